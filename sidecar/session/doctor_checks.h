/* doctor_checks.h: from facts to findings, each with a stable id, a cause and a cure (DOCTOR.md lists them). Pure: it
 * looks at what doctor_facts.h offers and at nothing else, so that a test can build any host. Split by subject:
 * doctor_checks.c the kernel and what stands around the sidecar, doctor_host.c files, amounts and cgroups,
 * doctor_cause.c which finding explains a failed probe. */
#pragma once

#include "session/doctor_facts.h"

enum ks_check_status { KS_CHECK_OK, KS_CHECK_WARN, KS_CHECK_FAIL };

struct ks_check {
	char id[48];
	enum ks_check_status status;
	/* A finding of this kind would keep every box from starting. It is overruled when the probe's box did start. */
	bool blocks;
	/* Not wrong by itself, but it explains some failures: see doctor_cause.c. */
	bool suspect;
	char found[480];
	char wanted[160]; /* "" absent; these two are dropped from a check that is ok in the end */
	char fix[720];
};

#define KS_CHECKS_MAX 96

struct ks_checks {
	size_t count;
	struct ks_check items[KS_CHECKS_MAX];
};

/* A new check, ok until one of the functions below says otherwise; never NULL (beyond the room the last one is reused).
 */
struct ks_check *ks_check_new(struct ks_checks *checks, const char *id);
void ks_check_found(struct ks_check *check, enum ks_check_status status, const char *fmt, ...) KS_PRINTF(3, 4);
void ks_check_wanted(struct ks_check *check, const char *fmt, ...) KS_PRINTF(2, 3);
void ks_check_fix(struct ks_check *check, const char *fmt, ...) KS_PRINTF(2, 3);

/* Every check of the host in the documented order, with the likely cause of a failed probe in front. */
void ks_doctor_examine(const struct ks_doctor_facts *facts, struct ks_checks *ret);
/* No check has failed. */
bool ks_checks_ok(const struct ks_checks *checks);
/* [{"id","status","found","wanted"?,"fix"?}, …] */
void ks_checks_write(const struct ks_checks *checks, struct ks_buf *json);

/* ---- between the parts ---- */
void ks_checks_kernel(const struct ks_doctor_facts *facts, struct ks_checks *checks);
void ks_checks_around(const struct ks_doctor_facts *facts, struct ks_checks *checks);
void ks_checks_namespaces(const struct ks_doctor_facts *facts, struct ks_checks *checks);
void ks_checks_confinement(const struct ks_doctor_facts *facts, struct ks_checks *checks);
void ks_checks_files(const struct ks_doctor_facts *facts, struct ks_checks *checks);
void ks_checks_amounts(const struct ks_doctor_facts *facts, struct ks_checks *checks);
void ks_checks_cgroups(const struct ks_doctor_facts *facts, struct ks_checks *checks);
/* "docker", "podman", …, or NULL when there is no sign of a container. */
const char *ks_facts_container(const struct ks_doctor_facts *facts);
/* What lets a container run boxes, to be pasted. */
#define KS_CONTAINER_CURE                                                                                              \
	"start the container with: docker run --user 1000:1000 --security-opt seccomp=unconfined --security-opt "      \
	"apparmor=unconfined --security-opt systempaths=unconfined IMAGE (podman: --security-opt unmask=ALL for the "  \
	"last; "                                                                                                       \
	"Kubernetes: seccompProfile and appArmorProfile of type Unconfined, procMount: Unmasked, hostUsers: false)"
