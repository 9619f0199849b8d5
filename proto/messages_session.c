/* messages_session.c: tables of session/open and its sisters. */
#include "proto/tables.h"

static const char *const pull_words[] = { "missing", "never", "always", NULL };
static const char *const start_words[] = { "auto", "cold", "template", "spare", "zygote", NULL };
static const char *const storage_words[] = { "disk", "memory", NULL };
static const char *const box_words[] = { "fresh", "resident", NULL };
static const char *const mount_words[] = { "ro", "rw", NULL };
const char *const ks_link_words[] = { "refuse", "inside", NULL };

static const struct ks_field mount_fields[] = {
	{ KS_STRING("source", struct ks_mount_params, source), KS_MUST, .min = 1, .max = KS_PATH_BYTES,
	  .pattern = KS_P_ABSOLUTE, .text = "A path of the host." },
	{ KS_STRING("target", struct ks_mount_params, target), KS_MUST, .min = 1, .max = KS_PATH_BYTES,
	  .pattern = KS_P_ABSOLUTE, .text = "Where the box sees it." },
	{ KS_ENUM("mode", struct ks_mount_params, mode, mount_words), KS_MUST, .text = "Read only or writable." },
};
static KS_TABLE(mount_schema, "Mount", mount_fields, .size = sizeof(struct ks_mount_params),
		.text = "A path of the host in the box.");

#define T struct ks_session_params
#define LATER .flags = KS_F_UNSUPPORTED /* not in this build: take the flag off when it is */

static const struct ks_field session_fields[] = {
	{ KS_STRING("sessionId", T, session_id), KS_HANDLE_RULE,
	  .text = "Chosen by the client; absent: by the server." },
	{ KS_STRING("image", T, image), .flags = KS_F_CLI, .min = 1, .max = KS_PATH_BYTES + 32, .fallback = "\"host\"",
	  .text = "host, dir:/path, oci:/path[:tag], docker-archive:/path or a registry reference." },
	{ KS_ENUM("pull", T, pull, pull_words), .flags = KS_F_CLI, .fallback = "\"missing\"",
	  .text = "When to ask the registry; no effect on local images." },
	{ KS_STRING("workspace", T, workspace), .flags = KS_F_CLI, .min = 1, .max = KS_PATH_BYTES,
	  .pattern = KS_P_ABSOLUTE,
	  .text = "A directory of the host that stays; absent: a private one, removed at close." },
	{ KS_STRING("workspaceTarget", T, workspace_target), .flags = KS_F_CLI, .min = 1, .max = KS_PATH_BYTES,
	  .pattern = KS_P_ABSOLUTE, .fallback = "\"/workspace\"", .text = "Where the box sees the workspace." },
	{ KS_STRING("cwd", T, cwd), .flags = KS_F_CLI, .min = 1, .max = KS_PATH_BYTES,
	  .text = "The working directory in the box; absent: the workspace." },
	{ KS_INT("memoryMb", T, memory_mb), .flags = KS_F_CLI, .min = 4, .max = KS_MAX_MEMORY_MB, .unit = "MiB",
	  .text = "Memory cap of each call; absent: a profile's, else 512." },
	{ KS_INT("cpusMilli", T, cpus_milli), .flags = KS_F_CLI, .min = 10, .max = KS_MAX_CPUS_MILLI,
	  .unit = "1/1000 CPU", .text = "CPU cap of each call; absent: a profile's, else none." },
	{ KS_INT("pids", T, pids), .flags = KS_F_CLI, .min = 1, .max = KS_MAX_PIDS, .fallback = "256",
	  .text = "Processes and threads of each call." },
	{ KS_INT("timeoutMs", T, timeout_ms), .flags = KS_F_CLI, .min = 1, .max = KS_MAX_TIMEOUT_MS,
	  .fallback = "30000", .unit = "ms", .text = "Deadline of each call, from the start of its main process." },
	{ KS_BOOL("network", T, network), .flags = KS_F_CLI | KS_F_RELAXES, .fallback = "false",
	  .text = "Shares the host's network with the box, 127.0.0.1 and abstract sockets included." },
	{ KS_STRINGS("egressAllow", T, egress_allow), LATER | KS_F_CLI | KS_F_RELAXES, .max = 256, .item_max = 512,
	  .text = "The only destinations that the box may reach." },
	{ KS_LIST("mounts", T, mounts, struct ks_mounts, &mount_schema), .flags = KS_F_CLI | KS_F_RELAXES, .max = 64,
	  .text = "Further paths of the host." },
	{ KS_PAIRS("tmpfs", T, tmpfs), KS_PRESENT(T, has_tmpfs), .flags = KS_F_CLI, .max = 64, .item_max = KS_PATH_BYTES,
	  .key_pattern = KS_P_ABSOLUTE, .pattern = KS_P_SIZE, .text = "Memory file systems: target to size, at most the memory cap. /tmp has 64m unless named; {} asks for none." },
	{ KS_STRING("shmSize", T, shm_size), .flags = KS_F_CLI, .min = 2, .max = 16, .pattern = KS_P_SIZE,
	  .text = "Size of /dev/shm." },
	{ KS_PAIRS("env", T, env), .flags = KS_F_CLI, .max = 256, .item_max = KS_WORD_BYTES,
	  .key_pattern = KS_P_ENV_NAME, .pattern = KS_P_ONE_LINE, .text = "Environment of every call." },
	{ KS_STRING("user", T, user), .flags = KS_F_CLI | KS_F_RELAXES, .min = 1, .max = 64,
	  .text = "Who the code runs as in the box: sandbox, root, a number below 65536, or a name of the image." },
	{ KS_BOOL("mapOwner", T, map_owner), .flags = KS_F_CLI | KS_F_RELAXES, .fallback = "false",
	  .text = "Under root: maps the box's user to the workspace's owner where nothing better works." },
	{ KS_PAIRS("interpreters", T, interpreters), .max = 64, .item_max = KS_PATH_BYTES + KS_KEY_BYTES,
	  .key_pattern = KS_P_LANGUAGE, .pattern = KS_P_ABSOLUTE,
	  .text = "Language to the interpreter's path in the image." },
	{ KS_STRINGS("preload", T, preload), .flags = KS_F_CLI, .max = 16, .item_max = 128,
	  .text = "Python modules that are imported before a call comes, once for all calls of the session where they can be forked (no threads, processes or open files are left by the import), else in the box of each. Their code is trusted with the session's calls. session/open answers when the first interpreter has them, or fails with preload_failed. Calls with variables, a directory or input of their own import by themselves." },
	{ KS_STRINGS("profiles", T, profiles), LATER | KS_F_CLI, .max = 16, .item_max = 64, .pattern = KS_P_HANDLE,
	  .text = "Named sets of options, later ones win." },
	{ KS_STRINGS("capDrop", T, cap_drop), KS_PRESENT(T, has_cap_drop), .flags = KS_F_CLI | KS_F_RELAXES, .max = 64,
	  .item_max = 32, .fallback = "[\"ALL\"]", .text = "Capabilities to drop from Docker's 14; what is kept is of use to root in the box only." },
	{ KS_STRING("securityProfile", T, security_profile), .flags = KS_F_CLI, .min = 1, .max = 64,
	  .text = "untrusted: a stricter system call filter, and no other option may weaken the box." },
	{ KS_STRING("apparmor", T, apparmor), .flags = KS_F_CLI, .min = 1, .max = 256,
	  .text = "AppArmor profile of the command; refused where it cannot be put on." },
	{ KS_BOOL("enforceLimits", T, enforce_limits), .flags = KS_F_CLI | KS_F_RELAXES, .fallback = "true",
	  .text = "false: no memory, CPU and process caps." },
	{ KS_BOOL("requireLimits", T, require_limits), .flags = KS_F_CLI, .fallback = "false",
	  .text = "Fail with limits_unenforced where the kernel cannot hold a cap." },
	{ KS_BOOL("depsReadonly", T, deps_readonly), .flags = KS_F_CLI | KS_F_RELAXES,
	  .fallback = "true", .text = "Installed packages are read only for the code." },
	{ KS_INT("maxOutputBytes", T, max_output_bytes), .flags = KS_F_CLI, .min = 1, .max = KS_MAX_OUTPUT_BYTES,
	  .fallback = "67108864", .unit = "bytes", .text = "How much of a call's output is kept; the call runs on." },
	{ KS_BOOL("trackFiles", T, track_files), .flags = KS_F_CLI, .fallback = "true",
	  .text = "Report the files that a call changed. Costs two walks of the workspace (about 3 us a file); false costs nothing." },
	{ KS_INT("workspaceMaxMb", T, workspace_max_mb), .flags = KS_F_CLI, .min = 1, .max = KS_MAX_MEMORY_MB,
	  .unit = "MiB", .text = "Size of the workspace that a call may not exceed, with 256 names for each MiB; watched. The kernel's, if the workspace is in memory, a file system of its own that is no larger (with a number of names of its own), or private with a project quota: see effective." },
	{ KS_ENUM("workspaceStorage", T, workspace_storage, storage_words), .flags = KS_F_CLI, .fallback = "\"disk\"",
	  .text = "memory: a private workspace in memory of exactly workspaceMaxMb, which must be given. The kernel refuses more (ENOSPC); nothing shows at its path on the host; files count as memory of the call that writes them." },
	{ KS_INT("prewarm", T, prewarm), .flags = KS_F_CLI, .min = 0, .max = 64, .fallback = "0",
	  .text = "Boxes that are kept ready for the session's next calls, also when it is idle. 0: as many as its calls show to be of use." },
	{ KS_ENUM("start", T, start, start_words), .flags = KS_F_CLI, .fallback = "\"auto\"",
	  .text = "How boxes are started. auto: a spare if one is ready, else from the template. spare: one that was ready before its call is claimed; it is made and waited for if there is none. zygote: an interpreter that was booted before, or forked from one (python; such calls of a session share the seed of hash()), where the language and the call allow it, else a spare. template: made for the call. cold: template and box are. start.kind of a result says which it was." },
	{ KS_ENUM("box", T, box, box_words), .flags = KS_F_CLI, .fallback = "\"fresh\"",
	  .unsupported_choices = 1u << KS_BOX_RESIDENT, .text = "A box for each call, or one that stays." },
};
const struct ks_schema ks_session_params = { .name = "SessionParams",
					     .text = "What boxes of a session are like.",
					     .size = sizeof(T),
					     .parts = { KS_FIELDS(session_fields) } };
KS_PARAMS(ks_session_open_params, "SessionOpenParams", session_fields, .text = "What boxes of the session are like.",
	  .size = sizeof(T));
#undef T

/* ---- results ---- */

static const struct ks_field session_image_fields[] = {
	KS_DOC(STRING, "ref", KS_MUST, .text = "As asked for."),
	KS_DOC(STRING, "digest", .text = "Of a registry or OCI image."),
	KS_DOC(MAP, "interpreters", KS_MUST, .text = "Language to the path that runs it."),
};
static KS_TABLE(session_image, "SessionImage", session_image_fields, .text = "What the boxes are made of.");

static const char *const enforced_words[] = { "kernel", "polled", "none", NULL };
static const struct ks_field effective_limit_fields[] = {
	KS_DOC(ANY, "value", .text = "The cap; absent: none."),
	KS_DOC(WORD, "enforced", KS_MUST, .choices = enforced_words, .text = "Who holds it."),
	KS_DOC(STRING, "reason", .text = "Why not the kernel, or by which means of it."),
};
static KS_TABLE(effective_limit, "EffectiveLimit", effective_limit_fields, .text = "A limit as it really is.");

static const struct ks_field effective_fields[] = {
	KS_DOC(OBJECT, "memoryMb", KS_MUST, .sub = &effective_limit, .text = "Memory of a call."),
	KS_DOC(OBJECT, "pids", KS_MUST, .sub = &effective_limit, .text = "Processes of a call."),
	KS_DOC(OBJECT, "cpusMilli", KS_MUST, .sub = &effective_limit, .text = "CPU of a call."),
	KS_DOC(OBJECT, "workspaceMaxMb", .sub = &effective_limit, .text = "Size of the workspace."),
	KS_DOC(OPEN, "ids", .text = "How user ids are mapped."),
};
static KS_TABLE(effective, "Effective", effective_fields, .text = "The limits in force.");

static const struct ks_field note_fields[] = {
	KS_DOC(STRING, "code", KS_MUST, .text = "Stable, in lower snake_case."),
	KS_DOC(STRING, "message", KS_MUST, .text = "For a person."),
};
static KS_TABLE(note, "Note", note_fields, .text = "Something worth knowing.");

static const struct ks_field session_open_result_fields[] = {
	KS_DOC(STRING, "sessionId", KS_MUST, .text = "The session."),
	KS_DOC(STRING, "workspace", KS_MUST, .text = "Its path on the host; an empty directory when it is in memory."),
	KS_DOC(STRING, "workspaceTarget", KS_MUST, .text = "Its path in the box."),
	KS_DOC(OBJECT, "image", KS_MUST, .sub = &session_image, .text = "What the boxes are made of."),
	KS_DOC(OBJECT, "effective", KS_MUST, .sub = &effective, .text = "The limits in force."),
	KS_DOC(LIST, "notes", KS_MUST, .sub = &note, .text = "What turned out differently than one might think."),
};
KS_TABLE(ks_session_open_result, "SessionOpenResult", session_open_result_fields, .text = "The session.");

static const struct ks_field session_handle_fields[] = {
	{ KS_STRING("sessionId", struct ks_handle_params, session_id), KS_MUST, KS_HANDLE_RULE,
	  .text = "The session." },
};
KS_PARAMS(ks_session_handle_params, "SessionHandleParams", session_handle_fields, .text = "Which session.",
	  .size = sizeof(struct ks_handle_params));

static const struct ks_field session_item_fields[] = {
	KS_DOC(STRING, "sessionId", KS_MUST, .text = "The session."),
	KS_DOC(STRING, "workspace", .text = "Its path on the host."),
	KS_DOC(STRING, "workspaceTarget", .text = "Its path in the box."),
	KS_DOC(STRING, "image", .text = "Its image."),
	KS_DOC(INT, "runs", .text = "Runs of it, waiting ones included."),
	KS_DOC(INT, "kernels", .text = "Its kernels."),
	KS_DOC(INT, "shells", .text = "Its shells."),
};
static KS_TABLE(session_item, "SessionItem", session_item_fields, .text = "An open session.");
static const struct ks_field session_list_fields[] = {
	KS_DOC(LIST, "sessions", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &session_item,
	       .text = "In the order of opening."),
};
KS_TABLE(ks_session_list_result, "SessionListResult", session_list_fields, .text = "The open sessions.");

static const struct ks_field session_closed_fields[] = {
	KS_DOC(STRING, "sessionId", KS_MUST, .text = "The session."),
	KS_DOC(STRING, "reason", KS_MUST, .text = "Why the sidecar ended it."),
};
KS_TABLE(ks_session_closed, "SessionClosed", session_closed_fields,
	 .text = "A session that the sidecar ended by itself.");

#define T struct ks_setup_params
static const struct ks_field setup_fields[] = {
	{ KS_STRING("sessionId", T, session_id), KS_MUST, KS_HANDLE_RULE, .text = "The session." },
	{ KS_STRING("command", T, command), KS_MUST, .min = 1, .max = KS_COMMAND_BYTES,
	  .text = "A shell command, with the network on. A leading pip install or npm install of packages goes to .deps." },
	{ KS_INT("timeoutMs", T, timeout_ms), .min = 1, .max = KS_MAX_TIMEOUT_MS, .unit = "ms",
	  .text = "Absent: the larger of the session's and 120 s." },
	{ KS_ENUM("stream", T, stream, ks_stream_words), .fallback = "\"off\"", .text = "As in run/code." },
};
KS_PARAMS(ks_session_setup_params, "SessionSetupParams", setup_fields, .text = "Prepares the session's file system.",
	  .size = sizeof(T));
#undef T

static const struct ks_field setup_result_fields[] = {
	KS_DOC(BOOL, "cached", KS_MUST, .text = "The same setup had been done before."),
};
const struct ks_schema ks_session_setup_result = { .name = "SessionSetupResult",
						   .text = "An ExecutionResult, and:",
						   .parts = { { ks_run_result_fields, KS_RUN_RESULT_FIELDS },
							      KS_FIELDS(setup_result_fields) } };

#define ARCHIVE(T)                                                                                                     \
	{ KS_STRING("sessionId", T, session_id), KS_MUST, KS_HANDLE_RULE, .text = "The session." },                    \
	{ KS_STRING("path", T, path), .min = 1, .max = KS_PATH_BYTES, .pattern = KS_P_ABSOLUTE,                        \
	  .text = "The archive on the host, outside of workspaces and writable mounts." },                             \
	{ KS_ENUM("links", T, links, ks_link_words), .fallback = "\"refuse\"",                                         \
	  .text = "Symbolic links: none, or those with a relative target inside of the workspace. snapshot skips the others, restore refuses the archive." }

static const struct ks_field snapshot_fields[] = { ARCHIVE(struct ks_snapshot_params) };
KS_PARAMS(ks_session_snapshot_params, "SessionSnapshotParams", snapshot_fields, .size = sizeof(struct ks_snapshot_params),
	  .text = "Packs the workspace as .tar.gz, to path (0600; replaces a regular file when it is whole) or into a blob. What restore would not take is not made: 500000 names, 4095 bytes a path, 256 directories deep, 16 GiB of content, files of 1 TiB with their holes.");
static const char *const skipped_words[] = { "symlink", "symlink_outside", "device", "fifo", "socket", "unreadable", "mount_point",
					      "name_too_long", "too_large", "changed", NULL };
static const struct ks_field skipped_fields[] = {
	KS_DOC(STRING, "path", .text = "In the workspace."),
	KS_DOC(BASE64, "pathBase64", .text = "Instead of path, when it is not UTF-8."),
	KS_DOC(WORD, "reason", KS_MUST, .choices = skipped_words,
	       .text = "Why it is not in the archive; changed: if it is there, somebody wrote to it meanwhile."),
};
static KS_TABLE(skipped_schema, "Skipped", skipped_fields, .text = "A name that a snapshot left out.");
static const struct ks_field snapshot_result_fields[] = {
	KS_DOC(INT, "bytes", KS_MUST, .unit = "bytes", .text = "Of the archive."),
	KS_DOC(INT, "entries", KS_MUST, .text = "In it."),
	KS_DOC(STRING, "sha256", KS_MUST, .text = "Of the archive."),
	KS_DOC(LIST, "skipped", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &skipped_schema,
	       .text = "What was left out, the first 10000."),
	KS_DOC(INT, "skippedMore", .text = "How many more were."),
	KS_DOC(TEXT, "blob", .text = "The archive, when no path was given."),
};
KS_TABLE(ks_session_snapshot_result, "SessionSnapshotResult", snapshot_result_fields, .text = "The archive.");

static int check_restore(const void *params, struct ks_error *err)
{
	const struct ks_restore_params *restore = params;

	if (!restore->path && !restore->blob.present)
		return ks_fail_at(err, KS_E_MISSING, "/path", "path or blob is required");
	if (restore->path && restore->blob.present)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/blob", "path and blob are two archives");
	return 0;
}

static const struct ks_field restore_fields[] = {
	ARCHIVE(struct ks_restore_params),
	{ KS_TEXT("blob", struct ks_restore_params, blob), .max = KS_TEXT_BYTES, .text = "The archive itself: base64, or a blob." },
};
KS_PARAMS(ks_session_restore_params, "SessionRestoreParams", restore_fields, .size = sizeof(struct ks_restore_params),
	  .check = check_restore, .rule = "Exactly one of path and blob.",
	  .text = "Replaces the workspace by the content of a .tar, .tar.gz or .tar.zst, all of it or nothing. Refused: what snapshot would not make (its limits; workspaceMaxMb when that is less), names that are absolute, have a part \"..\" or come twice, links that leave the workspace, devices, FIFOs, more than 200 times the packed size above 1 GiB.");
static const struct ks_field restore_result_fields[] = {
	KS_DOC(INT, "entries", KS_MUST, .text = "In the archive."),
	KS_DOC(INT, "bytes", KS_MUST, .unit = "bytes", .text = "Of content."),
	KS_DOC(LIST, "notes", KS_MUST, .sub = &note, .text = "deps_ignored: the archive's .deps is no plain directory, so calls have no packages."),
};
KS_TABLE(ks_session_restore_result, "SessionRestoreResult", restore_result_fields, .text = "What was restored.");
