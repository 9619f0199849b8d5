/* log.h: log lines for a person, on stderr (or --log-file), one line each, terminal escapes neutralised.
 * Never blocks: what stderr cannot take at once is dropped and counted. Never on fd 1. */
#pragma once

#include <stdbool.h>

#include "base.h"

enum ks_log_level { KS_LOG_ERROR, KS_LOG_WARN, KS_LOG_INFO, KS_LOG_DEBUG };

/* `code` is stable and lower snake_case ("plugin_refused"): clients and people search for it. */
void ks_log(enum ks_log_level level, const char *code, const char *fmt, ...) KS_PRINTF(3, 4);
void ks_log_set_level(enum ks_log_level level); /* default KS_LOG_WARN */
bool ks_log_wants(enum ks_log_level level); /* is a line of this level written? For those whose text costs time */
/* Lines go to `fd` from now on (it is not closed). -1: nowhere. */
void ks_log_set_fd(int fd);
/* Called for each line that passes the level, too: rpc turns them into $/log. NULL: nobody. */
void ks_log_set_sink(void (*sink)(void *arg, enum ks_log_level level, const char *code, const char *text), void *arg);
unsigned long ks_log_dropped(void);
const char *ks_log_level_name(enum ks_log_level level); /* "error", "warn", "info", "debug" */
