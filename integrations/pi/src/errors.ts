// Errors of the sidecar as those that pi and its model know: with the code of the system call, in the words of Node.
const CODES: Record<string, [code: string, text: string]> = {
	not_found: ["ENOENT", "no such file or directory"],
	permission_denied: ["EACCES", "permission denied"],
	not_a_directory: ["ENOTDIR", "not a directory"],
	is_directory: ["EISDIR", "illegal operation on a directory"],
	read_only: ["EROFS", "read-only file system"],
	no_space: ["ENOSPC", "no space left on device"],
	exists: ["EEXIST", "file already exists"],
};

/** `error` of a file method on `path`; `call` is what pi's own tool would have called. */
export function fileError(error: unknown, call: string, path: string): Error {
	const { reason, message } = error as { reason?: string; message?: string };
	const known = reason === undefined ? undefined : CODES[reason];
	if (known) {
		const where = known[0] === "EISDIR" && call === "read" ? "" : ` '${path}'`;
		return Object.assign(new Error(`${known[0]}: ${known[1]}, ${call}${where}`), { code: known[0], path, syscall: call });
	}
	if (reason === "path_escape")
		return Object.assign(new Error(`EACCES: ${path} is outside of what the sandbox gives: the working directory and what is mounted beside it (kern: path_escape)`), { code: "EACCES", path });
	return reason === undefined ? (error as Error) : new Error(`kern: ${reason}: ${message}`);
}

/** For everything else: nothing has run on the host instead. */
export function kernError(error: unknown): Error {
	const { reason, message } = error as { reason?: string; message?: string };
	return new Error(`kern: ${reason ?? "error"}: ${message ?? String(error)}`);
}
