#include "cli/plan.h"

#include <stdio.h>
#include <string.h>

#include "cli/flags.h"
#include "proto/tables.h"
#include "session/posture.h"

static int complain(const struct ks_error *err)
{
	(void)fprintf(stderr, "kern-sidecar: %s%s%s%s%s\n", err->pointer, err->pointer[0] ? ": " : "", err->text, err->hint[0] ? "; " : "",
		      err->hint);
	return 2;
}

static int print_plan(const struct ks_session_params *params, struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf text = { 0 };

	if (ks_posture_print(params, &text, err) < 0)
		return -1;
	return fwrite(text.data, 1, text.len, stdout) == text.len ? 0 : ks_fail(err, KS_E_IO, "cannot write to stdout");
}

int ks_cli_run(int argc, char **argv)
{
	struct ks_session_params params;
	struct ks_error err;
	int at = 1;

	if (argc < 2 || strcmp(argv[at], "--plan") != 0) {
		(void)fprintf(stderr, "kern-sidecar: run works with --plan only in this build; use --stdio\n");
		return 2;
	}
	at++;
	if (ks_flags_parse(&ks_session_params, argc, argv, &at, &params, &err) < 0)
		return complain(&err);
	int rc = at < argc ? ks_fail(&err, KS_E_UNKNOWN_OPTION, "unexpected argument %s", argv[at]) : print_plan(&params, &err);
	ks_params_free(&ks_session_params, &params);
	return rc < 0 ? complain(&err) : 0;
}
