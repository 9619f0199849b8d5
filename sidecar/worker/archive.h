/* archive.h: what a snapshot may hold and a restore takes. One set of numbers for both, so that what was packed can be unpacked. */
#pragma once

#include <stdint.h>

#define KS_ARCHIVE_ENTRIES 500000u		     /* names, directories that only a path mentions included */
#define KS_ARCHIVE_NAMES ((size_t)64 << 20)	     /* bytes of all names */
#define KS_ARCHIVE_PATH 4095			     /* bytes of one path: PATH_MAX without its NUL */
#define KS_ARCHIVE_NAME 255			     /* bytes of one name in it: NAME_MAX */
#define KS_ARCHIVE_DEPTH 256			     /* names in a path */
#define KS_ARCHIVE_BYTES (INT64_C(16) << 30)	     /* content of all files, without holes */
#define KS_ARCHIVE_FILE (INT64_C(1) << 40)	     /* size of one file, with holes */
#define KS_ARCHIVE_EXTENTS 65536u		     /* pieces of a file with holes */
#define KS_ARCHIVE_RATIO 200			     /* unpacked to packed bytes, above KS_ARCHIVE_RATIO_FROM */
#define KS_ARCHIVE_RATIO_FROM (INT64_C(1) << 30)
#define KS_ARCHIVE_RECORDS ((int64_t)1 << 20)	     /* bytes of an extended header */
#define KS_ARCHIVE_PADDING ((int64_t)1 << 20)	     /* zeros behind the end */
#define KS_ARCHIVE_SKIPPED 10000u		     /* names in `skipped`; more are counted */
#define KS_ARCHIVE_PIECE ((size_t)256 << 10)	     /* of a snapshot that becomes a blob, in one record */

/* Holds a restore until it is whole. Never in a snapshot, never taken from an archive. */
#define KS_RESTORE_NAME ".kern-restore"

enum ks_links { KS_LINKS_REFUSE, KS_LINKS_INSIDE };

enum ks_snapshot_record { KS_SNAPSHOT_PIECE, KS_SNAPSHOT_SKIPPED };

/* What KS_JOB_SWEEP found. */
enum ks_sweep { KS_SWEEP_NOTHING, KS_SWEEP_REMOVED, KS_SWEEP_BACK, KS_SWEEP_FORWARD };
