#include "cli/plan.h"

#include <stdio.h>

#include "cli/flags.h"
#include "session/posture.h"

int ks_cli_plan(const struct ks_session_params *params)
{
	KS_AUTOBUF struct ks_buf text = { 0 };
	struct ks_error err;

	if (ks_posture_print(params, &text, &err) < 0) {
		ks_cli_complain(&err);
		return 2;
	}
	if (fwrite(text.data, 1, text.len, stdout) == text.len && fflush(stdout) == 0)
		return 0;
	(void)fprintf(stderr, "kern-sidecar: cannot write to stdout\n");
	return 2;
}
