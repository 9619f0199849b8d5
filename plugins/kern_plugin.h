/* kern_plugin.h: the language plugin ABI, version 1. The only header that a plugin includes; plugins/README.md
 * teaches how to write one.
 *
 * A plugin is a shared object that describes processes: which program runs a piece of code, with which words,
 * environment and files. It runs inside the sidecar, so it must not fork, start threads, block, print, or touch file
 * descriptors; the sandbox is made by the sidecar alone, and nothing that a plugin says can weaken it. A plugin links
 * to nothing of the sidecar: all it may call comes in through struct kern_host.
 *
 * Growth: every struct begins with its size as the compiler of its author saw it. Members are only ever added at the
 * end; a member that lies beyond `size` reads as NULL or 0, and a tail that the reader does not know is ignored. A
 * change that breaks this would be a new symbol, kern_plugin_v2.
 *
 * Strings are NUL-terminated UTF-8. Pointers that are passed in are valid until the function returns; pointers that a
 * descriptor holds must be valid for ever. All functions are called on one thread and never from within each other. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KERN_PLUGIN_ABI 1u

#define KERN_LOG_ERROR 0
#define KERN_LOG_WARN 1
#define KERN_LOG_INFO 2
#define KERN_LOG_DEBUG 3

/* What a language can do; shown to clients, and checked before a request that needs it. */
#define KERN_CAN_RICH (1u << 0)	     /* its runner uses the result channel */
#define KERN_CAN_KERNEL (1u << 1)    /* one interpreter serves many cells */
#define KERN_CAN_ZYGOTE (1u << 2)    /* an interpreter can be booted before its call comes: KERN_RUN_PARK */
#define KERN_CAN_INTERRUPT (1u << 3) /* SIGINT ends a cell and keeps the state */
#define KERN_CAN_INPUT (1u << 4)     /* asks the client for input */
#define KERN_CAN_FORK (1u << 5)      /* one that was booted so can fork itself into boxes: KERN_RUN_ZYGOTE */
#define KERN_CAN_HEAR (1u << 6)      /* its kernel is told of an interrupt as it is of a cell, by a part `signal`; else by SIGINT */

struct kern_language {
	uint32_t size;		     /* sizeof(struct kern_language) */
	uint32_t flags;		     /* KERN_CAN_*; unknown bits are ignored */
	const char *name;	     /* [a-z][a-z0-9_+-]{0,31}, unique among all plugins */
	const char *const *programs; /* NULL-terminated, 1 to 8 names looked up in the image's PATH, first hit wins */
	const char *file_name;	     /* of the code's file by default: [A-Za-z0-9_][A-Za-z0-9._-]{0,63} */
	const char *const *aliases;  /* NULL, or NULL-terminated, at most 8 further names, like `name` */
	/* NULL, or NULL-terminated, at most 32: variables that the interpreter reads at its start; one that ends in "*" stands for all that
	 * begin so. A call that brings one is not served by an interpreter that has been booted before. NULL: all are such. */
	const char *const *boot_env;
};

/* One call that is about to be made. Paths are those of the box. */
struct kern_run {
	uint32_t size;		 /* sizeof(struct kern_run) */
	uint32_t first_line;	 /* >= 1: the line number of the caller's first line. `code` already has first_line - 1
				  * empty lines in front, so that an interpreter counts right by itself */
	const char *language;	 /* the name, also when the request used an alias */
	const char *interpreter; /* absolute path of the program, found and executable */
	const char *code;	 /* code_len bytes, then a NUL; may hold any byte; a leading byte order mark is gone */
	size_t code_len;	 /* at most KERN_CODE_MAX and those empty lines */
	const char *filename;	 /* the name that errors should show, or NULL: the path of the file made here */
	const char *const *args; /* arg_count words for the code itself */
	size_t arg_count;
	const char *runner_dir; /* the files of this plugin's run/ directory, read-only; NULL when it has none */
	const char *code_dir;	/* private directory of this call, where add_file puts files */
	int result_fd;		/* number of the result channel in the box, or -1: there is none */
	uint32_t flags;		/* KERN_RUN_*; unknown bits are ignored */
	const char *path;	/* the variable PATH of the box, unless the request sets another */
	const char *const *preload; /* with KERN_RUN_PARK: preload_count modules to load before it waits */
	size_t preload_count;
};
/* The process is to serve cells that come over the result channel (plugins/README.md). There is no code yet: code_len is
 * 0, and the caller gave no words. Only for languages with KERN_CAN_KERNEL. */
#define KERN_RUN_KERNEL (1u << 0)
/* The process is to be booted up to the point where it needs to know what to run, and to wait there for one message of the result
 * channel, which tells the words and the files that prepare describes for the call (plugins/README.md). There is no code yet.
 * Only for languages with KERN_CAN_ZYGOTE. Nothing of the caller's may be read before: no file of the working directory. */
#define KERN_RUN_PARK (1u << 1)
/* With KERN_RUN_PARK: it will serve no call itself, but fork processes that wait, each in a box of its own. Only for languages with
 * KERN_CAN_FORK. */
#define KERN_RUN_ZYGOTE (1u << 2)
#define KERN_CODE_MAX ((size_t)8 << 20)

/* The types of frames on the result channel. plugins/README.md has the wire format. */
#define KERN_FRAME_DISPLAY 1u
#define KERN_FRAME_UPDATE 2u
#define KERN_FRAME_CLEAR 3u
#define KERN_FRAME_ERROR 4u
#define KERN_FRAME_VALUE 5u
#define KERN_FRAME_STATE 6u

struct kern_part {
	const char *key; /* a mime type, or a plain word such as "id" */
	const void *data;
	size_t len;
};

/* One complete frame. The box wrote it: every byte is a claim and may be a lie. The sidecar has checked sizes, counts
 * and the characters of the keys, nothing else. */
struct kern_frame {
	uint32_t size; /* sizeof(struct kern_frame) */
	uint32_t type; /* KERN_FRAME_*, or a later type: ignore what you do not know */
	uint32_t call;
	uint32_t id;
	const struct kern_part *parts;
	size_t part_count;
};

#define KERN_DISPLAY 1
#define KERN_VALUE 2
#define KERN_FIGURE 3
#define KERN_UPDATE 4 /* replaces the data of every earlier result with the same display id; makes none */

struct kern_result {
	uint32_t size;	/* sizeof(struct kern_result) */
	int kind;	/* KERN_DISPLAY, KERN_VALUE, KERN_FIGURE, KERN_UPDATE */
	const char *id; /* display id of at most 128 bytes, or NULL */
	size_t id_len;
	const struct kern_part *data; /* key = mime type (RFC 6838 type/subtype); at most 32 */
	size_t data_count;
	const char *metadata; /* JSON object as text, or NULL */
	size_t metadata_len;
};

struct kern_error_frame {
	const char *file, *function, *source; /* not NUL-terminated; NULL or length 0: not known */
	size_t file_len, function_len, source_len;
	uint32_t line, column; /* from 1; 0: not known */
};

struct kern_error {
	uint32_t size;					/* sizeof(struct kern_error) */
	const char *name, *message, *phase, *traceback; /* not NUL-terminated; NULL: absent */
	size_t name_len, message_len, phase_len, traceback_len;
	const struct kern_error_frame *frames; /* outermost first, at most 100 */
	size_t frame_count;
	const struct kern_error *cause; /* what it came from, or NULL; those more than 8 deep are left out */
};

/* The services that the sidecar lends. Check `size` before you use one that came after version 1.
 * Those that return int return 0, or -1 when the sidecar refused; the reason is recorded, so just return -1 as well. */
struct kern_host {
	uint32_t size; /* sizeof(struct kern_host) */
	void (*log)(struct kern_host *host, int level, const char *text);
	/* Says why the call cannot be made and returns -1. `pointer`: the request's field at fault as JSON Pointer
	 * ("/code"), or NULL. */
	int (*fail)(struct kern_host *host, const char *pointer, const char *text);

	/* In prepare only. Words come in order, run->interpreter first; at most 64 besides run->args. A variable is a
	 * default: the request's own env wins; names [A-Za-z_][A-Za-z0-9_]*, each once, at most 64. Files go to
	 * run->code_dir; names like kern_language.file_name, each once, at most 16 and 16 MiB together; mode at most
	 * 0777. Words and variables together: at most 1 MiB. Everything is copied. */
	int (*add_arg)(struct kern_host *host, const char *word);
	int (*set_env)(struct kern_host *host, const char *name, const char *value);
	int (*add_file)(struct kern_host *host, const char *name, const void *data, size_t len, uint32_t mode);

	/* In result only. Everything is copied. */
	int (*emit_result)(struct kern_host *host, const struct kern_result *result);
	int (*emit_clear)(struct kern_host *host,
			  int wait); /* removes what the call has shown; wait: at the next result */
	int (*emit_error)(struct kern_host *host, const struct kern_error *error);
};

struct kern_ops {
	uint32_t size; /* sizeof(struct kern_ops) */
	/* Describes the process of one call by add_arg, set_env and add_file. 0, or -1 after host->fail. */
	int (*prepare)(void *self, const struct kern_run *run, struct kern_host *host);
	/* Turns one frame into results. NULL: frames are as plugins/README.md says, and the sidecar reads them itself,
	 * which is what a runner should aim for. 0, or -1: the frame makes no sense, the channel is closed. */
	int (*result)(void *self, const struct kern_frame *frame, struct kern_host *host);
};

struct kern_plugin {
	uint32_t abi;				      /* KERN_PLUGIN_ABI */
	uint32_t size;				      /* sizeof(struct kern_plugin) */
	const char *name, *version;		      /* 1 to 64 printable ASCII characters */
	const struct kern_language *const *languages; /* NULL-terminated, 1 to 16 */
	const struct kern_ops *ops;
	/* Both may be NULL. open: 0 and *self, which is handed to the other functions, or -1 after host->fail. */
	int (*open)(struct kern_host *host, void **self);
	void (*close)(void *self);
};

/* The one symbol that a plugin exports. It is data: the checks come before any of the plugin's functions runs. */
extern __attribute__((visibility("default"))) const struct kern_plugin kern_plugin_v1;

#ifdef __cplusplus
}
#endif
