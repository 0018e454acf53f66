/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause */
#include "../kernel.h"
