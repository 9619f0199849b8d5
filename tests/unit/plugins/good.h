/* good.h: a plugin in which nothing is wrong. A test plugin defines what it wants to be different and includes this. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/kern_plugin.h"

#ifndef ABI
#define ABI KERN_PLUGIN_ABI
#endif
#ifndef SIZE
#define SIZE sizeof(struct kern_plugin)
#endif
#ifndef NAME
#define NAME "test"
#endif
#ifndef LANGUAGE
#define LANGUAGE "test"
#endif
#ifndef PROGRAM
#define PROGRAM "test"
#endif
#ifndef FILE_NAME
#define FILE_NAME "main.test"
#endif
#ifndef BOOT_ENV
#define BOOT_ENV NULL
#endif
#ifndef OPS
#define OPS &ops
#endif
#ifndef OPEN
#define OPEN NULL
#endif
#ifndef CLOSE
#define CLOSE NULL
#endif
#ifndef RESULT
#define RESULT NULL
#endif
#ifndef LANGUAGES
#define LANGUAGES                                                                                                      \
	{                                                                                                              \
		&language, NULL                                                                                        \
	}
#endif

#ifndef PREPARE
#define PREPARE prepare
static inline int prepare(void *self, const struct kern_run *run, struct kern_host *host)
{
	(void)self;
	return host->add_arg(host, run->interpreter);
}
#endif

static const char *const programs[] = { PROGRAM, NULL };
static const struct kern_language language = {
	.size = sizeof(language), .name = LANGUAGE, .programs = programs, .file_name = FILE_NAME,
	.boot_env = BOOT_ENV
};
static const struct kern_language *const languages[] = LANGUAGES;
static const struct kern_ops ops = { .size = sizeof(ops), .prepare = PREPARE, .result = RESULT };

const struct kern_plugin kern_plugin_v1 = { .abi = ABI,
					    .size = SIZE,
					    .name = NAME,
					    .version = "1",
					    .languages = languages,
					    .ops = OPS,
					    .open = OPEN,
					    .close = CLOSE };

/* Those that a test plugin replaces are still used, so that no compiler complains. */
static inline const void *unused(void)
{
	return (const char *)&language + sizeof(ops) + (programs[0] ? 1 : 0);
}
