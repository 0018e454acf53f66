# SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-3-Clause
import enum
from types import TracebackType
from typing import Any, Callable, Iterable, Optional, Sequence, SupportsInt, Union

from .errors import (
    IN_PLACE as IN_PLACE,
    ArgumentError as ArgumentError,
    DeadlineError as DeadlineError,
    Error as Error,
    MismatchError as MismatchError,
    RankDiedError as RankDiedError,
    ResourceError as ResourceError,
    RevokedError as RevokedError,
    ThreadError as ThreadError,
    TruncatedError as TruncatedError,
    UnsupportedError as UnsupportedError,
)
from .messages import ANY_SOURCE as ANY_SOURCE, ANY_TAG as ANY_TAG, Received as Received

# An object with the buffer protocol: collections.abc.Buffer from Python 3.12 on.
Buffer = Any
Counts = Sequence[SupportsInt]

__version__: str

class Type(enum.IntEnum):
    INT8 = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    UINT8 = 4
    UINT16 = 5
    UINT32 = 6
    UINT64 = 7
    FP16 = 8
    BF16 = 9
    FLOAT = 10
    DOUBLE = 11
    COMPLEX_FLOAT = 12
    COMPLEX_DOUBLE = 13
    INT16_INT32 = 14
    INT32_INT32 = 15
    INT64_INT32 = 16
    FLOAT_INT32 = 17
    DOUBLE_INT32 = 18

class ReduceOp(enum.IntEnum):
    SUM = 0
    PROD = 1
    MIN = 2
    MAX = 3
    LAND = 4
    LOR = 5
    LXOR = 6
    BAND = 7
    BOR = 8
    BXOR = 9
    MINLOC = 10
    MAXLOC = 11

INT8: Type
INT16: Type
INT32: Type
INT64: Type
UINT8: Type
UINT16: Type
UINT32: Type
UINT64: Type
FP16: Type
BF16: Type
FLOAT: Type
DOUBLE: Type
COMPLEX_FLOAT: Type
COMPLEX_DOUBLE: Type
INT16_INT32: Type
INT32_INT32: Type
INT64_INT32: Type
FLOAT_INT32: Type
DOUBLE_INT32: Type
SUM: ReduceOp
PROD: ReduceOp
MIN: ReduceOp
MAX: ReduceOp
LAND: ReduceOp
LOR: ReduceOp
LXOR: ReduceOp
BAND: ReduceOp
BOR: ReduceOp
BXOR: ReduceOp
MINLOC: ReduceOp
MAXLOC: ReduceOp

class Op: ...

Reduction = Union[ReduceOp, Op, int, None]

class Context:
    @property
    def world(self) -> Group: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def progress(self) -> None: ...
    def fileno(self) -> int: ...
    def counters(self) -> dict[str, int]: ...
    def costs(self) -> str: ...
    def wan(self) -> Optional[dict[str, Any]]: ...
    def op(self, function: Callable[[Any, Any, Any], Any], commutative: bool = ...) -> Op: ...
    def __enter__(self) -> Context: ...
    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None: ...

class Request:
    @property
    def active(self) -> bool: ...
    @property
    def persistent(self) -> bool: ...
    @property
    def result(self) -> Any: ...
    def wait(self) -> Any: ...
    def test(self) -> bool: ...
    def start(self) -> Request: ...
    def cancel(self) -> None: ...
    def set_deadline(self, seconds: float, /) -> None: ...
    def explain(self) -> str: ...
    def close(self) -> None: ...
    def __enter__(self) -> Request: ...
    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None: ...

class Group:
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def clusters(self) -> list[int]: ...
    @property
    def closed(self) -> bool: ...
    @property
    def context(self) -> Context: ...
    @property
    def last_error(self) -> str: ...
    def split(self, color: Optional[int], key: int = ...) -> Optional[Group]: ...
    def from_ranks(self, ranks: Sequence[int], /) -> Optional[Group]: ...
    def dup(self) -> Group: ...
    def shrink(self) -> Group: ...
    def agree(self, flag: int = ..., /) -> int: ...
    def revoke(self) -> None: ...
    def failed_ranks(self) -> list[int]: ...
    def set(self, **options: object) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Group: ...
    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None: ...
    def barrier(self) -> None: ...
    def ibarrier(self) -> Request: ...
    def barrier_init(self) -> Request: ...
    def bcast(self, buf: Buffer, root: int = ..., *, type: Optional[int] = ...) -> Any: ...
    def ibcast(self, buf: Buffer, root: int = ..., *, type: Optional[int] = ...) -> Request: ...
    def bcast_init(
        self,
        buf: Buffer,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def gather(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def igather(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def gather_init(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def gatherv(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        counts: Optional[Counts] = ...,
        displs: Optional[Counts] = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def igatherv(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        counts: Optional[Counts] = ...,
        displs: Optional[Counts] = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def gatherv_init(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        counts: Optional[Counts] = ...,
        displs: Optional[Counts] = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def scatter(
        self,
        sendbuf: Optional[Buffer],
        recvbuf: Optional[Buffer] = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def iscatter(
        self,
        sendbuf: Optional[Buffer],
        recvbuf: Optional[Buffer] = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def scatter_init(
        self,
        sendbuf: Optional[Buffer],
        recvbuf: Optional[Buffer] = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def scatterv(
        self,
        sendbuf: Optional[Buffer],
        recvbuf: Optional[Buffer] = ...,
        counts: Optional[Counts] = ...,
        displs: Optional[Counts] = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def iscatterv(
        self,
        sendbuf: Optional[Buffer],
        recvbuf: Optional[Buffer] = ...,
        counts: Optional[Counts] = ...,
        displs: Optional[Counts] = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def scatterv_init(
        self,
        sendbuf: Optional[Buffer],
        recvbuf: Optional[Buffer] = ...,
        counts: Optional[Counts] = ...,
        displs: Optional[Counts] = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def allgather(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def iallgather(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def allgather_init(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def allgatherv(
        self,
        sendbuf: Buffer,
        recvbuf: Buffer,
        counts: Counts,
        displs: Optional[Counts] = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def iallgatherv(
        self,
        sendbuf: Buffer,
        recvbuf: Buffer,
        counts: Counts,
        displs: Optional[Counts] = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def allgatherv_init(
        self,
        sendbuf: Buffer,
        recvbuf: Buffer,
        counts: Counts,
        displs: Optional[Counts] = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def alltoall(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def ialltoall(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def alltoall_init(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def alltoallv(
        self,
        sendbuf: Buffer,
        recvbuf: Buffer,
        send_counts: Optional[Counts],
        recv_counts: Counts,
        send_displs: Optional[Counts] = ...,
        recv_displs: Optional[Counts] = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def ialltoallv(
        self,
        sendbuf: Buffer,
        recvbuf: Buffer,
        send_counts: Optional[Counts],
        recv_counts: Counts,
        send_displs: Optional[Counts] = ...,
        recv_displs: Optional[Counts] = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def alltoallv_init(
        self,
        sendbuf: Buffer,
        recvbuf: Buffer,
        send_counts: Optional[Counts],
        recv_counts: Counts,
        send_displs: Optional[Counts] = ...,
        recv_displs: Optional[Counts] = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def reduce(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def ireduce(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def reduce_init(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        root: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def allreduce(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def iallreduce(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def allreduce_init(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def reduce_scatter(
        self,
        sendbuf: Buffer,
        recvbuf: Buffer,
        counts: Counts,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def ireduce_scatter(
        self,
        sendbuf: Buffer,
        recvbuf: Buffer,
        counts: Counts,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def reduce_scatter_init(
        self,
        sendbuf: Buffer,
        recvbuf: Buffer,
        counts: Counts,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def reduce_scatter_block(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def ireduce_scatter_block(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def reduce_scatter_block_init(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def scan(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def iscan(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def scan_init(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def exscan(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Any: ...
    def iexscan(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def exscan_init(
        self,
        sendbuf: Buffer,
        recvbuf: Optional[Buffer] = ...,
        op: Reduction = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def send(
        self,
        sendbuf: Buffer,
        dest: int,
        tag: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> None: ...
    def isend(
        self,
        sendbuf: Buffer,
        dest: int,
        tag: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...
    def recv(
        self,
        recvbuf: Buffer,
        source: int = ...,
        tag: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Received: ...
    def irecv(
        self,
        recvbuf: Buffer,
        source: int = ...,
        tag: int = ...,
        *,
        type: Optional[int] = ...,
    ) -> Request: ...

def open(**options: object) -> Context: ...
def opaque(size: int) -> int: ...
def pair(value: Any) -> Any: ...
def waitall(requests: Iterable[Request], /) -> None: ...
def testall(requests: Iterable[Request], /) -> bool: ...
def waitany(requests: Iterable[Request], /) -> Optional[int]: ...
def testany(requests: Iterable[Request], /) -> Optional[int]: ...
