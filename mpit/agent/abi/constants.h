/*
 * constants.h - those of MPI's constants that are numbers, in the three ABIs: X(name, Open MPI, MPICH, the standard).
 * Those that an older mpi.h lacks are marked.
 */
#ifndef MPIT_ABI_CONSTANTS_H
#define MPIT_ABI_CONSTANTS_H

#define MPI_CONSTANTS(X)                                                                \
	X(MPI_SUCCESS,                      0,          0,      0)                      \
	X(MPI_ERR_OTHER,                   16,         15,     16)                      \
	X(MPI_T_ERR_MEMORY,                54,         59,   1005)                      \
	X(MPI_T_ERR_NOT_INITIALIZED,       55,         60,   1003)                      \
	X(MPI_T_ERR_CANNOT_INIT,           56,         61,   1001)                      \
	X(MPI_T_ERR_INVALID_INDEX,         57,         62,   1007)                      \
	X(MPI_T_ERR_INVALID_ITEM,          58,         63,   1008)                      \
	X(MPI_T_ERR_INVALID_HANDLE,        59,         64,   1010)                      \
	X(MPI_T_ERR_OUT_OF_HANDLES,        60,         65,   1012)                      \
	X(MPI_T_ERR_OUT_OF_SESSIONS,       61,         66,   1013)                      \
	X(MPI_T_ERR_INVALID_SESSION,       62,         67,   1009)                      \
	X(MPI_T_ERR_CVAR_SET_NOT_NOW,      63,         68,   1014)                      \
	X(MPI_T_ERR_CVAR_SET_NEVER,        64,         69,   1015)                      \
	X(MPI_T_ERR_PVAR_NO_STARTSTOP,     65,         70,   1017)                      \
	X(MPI_T_ERR_PVAR_NO_WRITE,         66,         71,   1016)                      \
	X(MPI_T_ERR_PVAR_NO_ATOMIC,        67,         72,   1018)                      \
	X(MPI_T_ERR_INVALID,               72,         74,   1006)                      \
	X(MPI_T_ERR_INVALID_NAME,          73,         73,   1011)                      \
	X(MPI_T_ERR_NOT_SUPPORTED,         82,         78,   1004) /* later ones */     \
	X(MPI_T_ERR_NOT_ACCESSIBLE,        81,         79,   1002) /* later ones */     \
	X(MPI_THREAD_SINGLE,                0,          0,      0)                      \
	X(MPI_THREAD_FUNNELED,              1,          1,   1024)                      \
	X(MPI_THREAD_SERIALIZED,            2,          2,   2048)                      \
	X(MPI_THREAD_MULTIPLE,              3,          3,   4096)                      \
	X(MPI_T_VERBOSITY_USER_BASIC,       0,        221,   0x09)                      \
	X(MPI_T_VERBOSITY_USER_DETAIL,      1,        222,   0x0a)                      \
	X(MPI_T_VERBOSITY_USER_ALL,         2,        223,   0x0c)                      \
	X(MPI_T_VERBOSITY_TUNER_BASIC,      3,        224,   0x11)                      \
	X(MPI_T_VERBOSITY_TUNER_DETAIL,     4,        225,   0x12)                      \
	X(MPI_T_VERBOSITY_TUNER_ALL,        5,        226,   0x14)                      \
	X(MPI_T_VERBOSITY_MPIDEV_BASIC,     6,        227,   0x21)                      \
	X(MPI_T_VERBOSITY_MPIDEV_DETAIL,     7,        228,   0x22)                     \
	X(MPI_T_VERBOSITY_MPIDEV_ALL,       8,        229,   0x24)                      \
	X(MPI_T_BIND_NO_OBJECT,             0,       9700,      1)                      \
	X(MPI_T_BIND_MPI_SESSION,          11,       9711,     12) /* later ones */     \
	X(MPI_T_PVAR_CLASS_STATE,           0,        240,      1)                      \
	X(MPI_T_PVAR_CLASS_GENERIC,         9,        249,     10)                      \
	X(MPI_T_SCOPE_CONSTANT,             0,      60438,      1)                      \
	X(MPI_T_SCOPE_ALL_EQ,               6,      60444,      7)                      \
	X(MPI_T_CB_REQUIRE_NONE,            0,          0,      0) /* MPI-4's */        \
	X(MPI_T_CB_REQUIRE_MPI_RESTRICTED,  1,          1,   0x03) /* MPI-4's */        \
	X(MPI_T_CB_REQUIRE_THREAD_SAFE,     2,          2,   0x0f) /* MPI-4's */        \
	X(MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, 3,        3,   0x3f) /* MPI-4's */        \
	X(MPI_T_SOURCE_ORDERED,             0,          0,      1) /* MPI-4's */        \
	X(MPI_UNDEFINED,               -32766,     -32766, -32766)                      \
	X(MPI_KEYVAL_INVALID,              -1, 0x24000000,      0)                      \
	X(MPI_ANY_SOURCE,                  -1,         -2,     -1)                      \
	X(MPI_PROC_NULL,                   -2,         -1,     -3)                      \
	X(MPI_ROOT,                        -4,         -3,     -4)                      \
	X(MPI_CART,                         1,          2,    211)                      \
	X(MPI_GRAPH,                        2,          1,    212)                      \
	X(MPI_DIST_GRAPH,                   3,          3,    213)                      \
	X(MPI_WIN_BASE,                     7, 0x66000001,    601)                      \
	X(MPI_WIN_SIZE,                     8, 0x66000003,    603)                      \
	X(MPI_WIN_DISP_UNIT,                9, 0x66000005,    602)                      \
	X(MPI_WIN_CREATE_FLAVOR,           10, 0x66000007,    604)                      \
	X(MPI_WIN_MODEL,                   11, 0x66000009,    605)                      \
	X(MPI_WIN_FLAVOR_CREATE,            1,          1,    311)                      \
	X(MPI_WIN_FLAVOR_ALLOCATE,          2,          2,    312)                      \
	X(MPI_WIN_FLAVOR_DYNAMIC,           3,          3,    313)                      \
	X(MPI_WIN_FLAVOR_SHARED,            4,          4,    314)                      \
	X(MPI_WIN_SEPARATE,                 1,          1,    322)                      \
	X(MPI_WIN_UNIFIED,                  0,          2,    321)                      \
	X(MPI_MODE_RDONLY,                  2,          2,     16)                      \
	X(MPI_MODE_WRONLY,                  4,          4,    256)                      \
	X(MPI_MODE_RDWR,                    8,          8,     32)                      \
	X(MPI_MODE_CREATE,                  1,          1,      2)                      \
	X(MPI_MODE_EXCL,                   64,         64,      8)                      \
	X(MPI_MODE_DELETE_ON_CLOSE,        16,         16,      4)                      \
	X(MPI_MODE_UNIQUE_OPEN,            32,         32,    128)                      \
	X(MPI_MODE_APPEND,                128,        128,      1)                      \
	X(MPI_MODE_SEQUENTIAL,            256,        256,     64)                      \
	X(MPI_COMBINER_NAMED,               0,          1,    101)                      \
	X(MPI_COMBINER_DUP,                 1,          2,    102)                      \
	X(MPI_COMBINER_CONTIGUOUS,          2,          3,    103)                      \
	X(MPI_COMBINER_VECTOR,              3,          4,    104)                      \
	X(MPI_COMBINER_HVECTOR,             5,          6,    105)                      \
	X(MPI_COMBINER_INDEXED,             6,          7,    106)                      \
	X(MPI_COMBINER_HINDEXED,            8,          9,    107)                      \
	X(MPI_COMBINER_INDEXED_BLOCK,       9,         10,    108)                      \
	X(MPI_COMBINER_HINDEXED_BLOCK,     18,         19,    109)                      \
	X(MPI_COMBINER_STRUCT,             11,         12,    110)                      \
	X(MPI_COMBINER_SUBARRAY,           12,         13,    111)                      \
	X(MPI_COMBINER_DARRAY,             13,         14,    112)                      \
	X(MPI_COMBINER_F90_REAL,           14,         15,    113)                      \
	X(MPI_COMBINER_F90_COMPLEX,        15,         16,    114)                      \
	X(MPI_COMBINER_F90_INTEGER,        16,         17,    115)                      \
	X(MPI_COMBINER_RESIZED,            17,         18,    116)

#endif
