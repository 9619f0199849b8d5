/* plan.h: `kern-sidecar run --plan`: what would be set up, without doing it. */
#pragma once

/* The `run` command; argv[0] is "run". Returns the exit status. */
int ks_cli_run(int argc, char **argv);
