// SPDX-License-Identifier: GPL-2.0
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "kmod/common/subsystem.h"
#include "user.h"

static unsigned int files_per_user = 4096;
module_param(files_per_user, uint, 0644);
MODULE_PARM_DESC(files_per_user,
		 "open files of /dev/coll of a user without CAP_SYS_RESOURCE; each has a thread");

struct kcoll_user {
	struct list_head node;
	kuid_t uid;
	unsigned int files;
};

static LIST_HEAD(users);		/* with open files: few */
static DEFINE_MUTEX(users_mutex);

/*
 * Who the caller counts as. A user is in user namespaces of its own whoever it likes (subuid): there it
 * is the one who made the outermost of them. Those that root has made are containers, whose users are
 * told apart.
 */
static kuid_t user_counted(void)
{
	const struct user_namespace *space;
	kuid_t uid = current_uid();

	for (space = current_user_ns(); space != &init_user_ns; space = space->parent)
		if (!uid_eq(space->owner, GLOBAL_ROOT_UID))
			uid = space->owner;
	return uid;
}

/* The entry of this user; a new one has no file yet. */
static struct kcoll_user *user_find(kuid_t uid)
{
	struct kcoll_user *user;

	lockdep_assert_held(&users_mutex);
	list_for_each_entry(user, &users, node)
		if (uid_eq(user->uid, uid))
			return user;
	user = kzalloc(sizeof(*user), COLL_GFP);
	if (!user)
		return ERR_PTR(-ENOMEM);
	user->uid = uid;
	list_add(&user->node, &users);
	return user;
}

static void user_free_unused(struct kcoll_user *user)
{
	lockdep_assert_held(&users_mutex);
	if (user->files)
		return;
	list_del(&user->node);
	kfree(user);
}

struct kcoll_user *kcoll_user_get(void)
{
	struct kcoll_user *user;

	mutex_lock(&users_mutex);
	user = user_find(user_counted());
	if (IS_ERR(user))
		goto out;
	if (user->files >= READ_ONCE(files_per_user) && !capable(CAP_SYS_RESOURCE)) {
		user_free_unused(user);
		user = ERR_PTR(-EMFILE);
		goto out;
	}
	user->files++;
out:
	mutex_unlock(&users_mutex);
	return user;
}

void kcoll_user_put(struct kcoll_user *user)
{
	mutex_lock(&users_mutex);
	user->files--;
	user_free_unused(user);
	mutex_unlock(&users_mutex);
}
