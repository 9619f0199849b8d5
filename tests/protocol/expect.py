"""Small helpers of the protocol tests: the numbers of the contract's section 8, and what a refusal must look like."""

CODES = {
    "parse": -32700,
    "invalid_request": -32600,
    "duplicate_id": -32600,
    "batch_unsupported": -32600,
    "unknown_method": -32601,
    "unknown_option": -32602,
    "unsupported_option": -32602,
    "invalid_type": -32602,
    "invalid_value": -32602,
    "out_of_range": -32602,
    "missing": -32602,
    "internal": -32603,
    "not_initialized": -32002,
    "cancelled": -32800,
    "unsupported_protocol": 1002,
    "overloaded": 1003,
    "limit": 1004,
    "line_too_long": 1005,
    "unknown_handle": 1100,
    "duplicate_handle": 1101,
    "busy": 1103,
    "kernel_dead": 1104,
    "shell_dead": 1105,
    "preload_failed": 1405,
    "gone": 1106,
    "image_not_found": 1200,
    "image_invalid": 1201,
    "path_escape": 1300,
    "not_found": 1301,
    "not_regular": 1302,
    "too_large": 1303,
    "exists": 1304,
    "io": 1305,
    "permission_denied": 1306,
    "is_directory": 1307,
    "not_a_directory": 1308,
    "invalid_path": 1309,
    "changed": 1310,
    "edit_no_match": 1311,
    "edit_not_unique": 1312,
    "no_space": 1313,
    "read_only": 1314,
    "not_empty": 1315,
    "start_failed": 1400,
    "mount_refused": 1401,
    "limits_unenforced": 1402,
    "host_unsupported": 1404,
    "setup_failed": 1500,
    "archive_refused": 1600,
    "unknown_language": 1701,
}


def refused(error, reason, path=None):
    """Asserts the whole of a typed refusal."""
    assert error.reason == reason, error
    assert error.code == CODES[reason], error
    assert error.data["retryable"] is (reason in ("overloaded", "busy")), error
    if path is not None:
        assert error.data.get("path") == path, error
    assert len(error.message) >= 8, error


def plain(result, stdout="", stderr="", code=0):
    """Asserts a run without fault, signal or anything out of the ordinary."""
    assert "fault" not in result, result
    assert "signal" not in result, result
    assert (result["stdout"], result["stderr"], result["exitCode"]) == (stdout, stderr, code), result
    assert result["success"] is (code == 0)
    assert result["truncated"] is False
    assert (result["stdoutBytes"], result["stderrBytes"]) == (len(stdout.encode()), len(stderr.encode()))


def fault(result, kind):
    assert result.get("fault", {}).get("type") == kind, result
    assert result["fault"]["message"], result
    assert result["success"] is False
    return result["fault"]
