/*
 * Identity: the machine's key, made on first start, and what its market gave it at enrolment.
 *
 * Kept in the state folder, mode 0600: machine.key (32 bytes, Ed25519 seed), enrolment.json, and
 * host.json: which machine it is, so that a copied disk is noticed (host.h).
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    IDENTITY_KEY_SIZE = 32,
    IDENTITY_SIGNATURE_SIZE = 64,
    IDENTITY_URL_SIZE = 512,
    IDENTITY_ADDRESS_SIZE = 272,
    IDENTITY_FINGERPRINT_SIZE = 65, /* hex and a zero byte */
    IDENTITY_NAME_SIZE = 65,
};

/* What enrolment brought; written and read as one JSON object. */
struct enrolment {
    uint64_t machine; /* 0: not enlisted */
    uint64_t generation;
    uint8_t link_key[IDENTITY_KEY_SIZE];
    uint8_t server_public_key[IDENTITY_KEY_SIZE];
    char server_url[IDENTITY_URL_SIZE];
    char fingerprint[IDENTITY_FINGERPRINT_SIZE]; /* empty: none pinned */
    char link_address[IDENTITY_ADDRESS_SIZE];
    char name[IDENTITY_NAME_SIZE];
    /* What was offered then; 0 in files of before this was kept. */
    int64_t cores_milli;
    int64_t ram_bytes;
    int64_t disk_bytes;
    uint64_t roles; /* of enum peer_role */
};

struct identity;

/* Reads the folder's key and enrolment, making the key when there is none. CORRUPT when a file is
 * not what it should be, REFUSED when others may read it. */
MUST_CHECK int identity_open(const char *state_dir, struct identity **out_identity,
                             struct error *error);
void identity_free(struct identity *identity); /* wipes the keys; NULL is fine */
DEFINE_AUTO(identity);

/*
 * CONFLICT when the folder was made on another machine, unless `is_same` says that it is this one
 * with new parts. What is known of the machine is kept up to date.
 */
MUST_CHECK int identity_bind(struct identity *identity, const char *root, bool is_same,
                             struct error *error);
/* Removes what identity_open reads: the next one is somebody new. */
MUST_CHECK int identity_forget(const char *state_dir, struct error *error);

const uint8_t *identity_public_key(const struct identity *identity); /* IDENTITY_KEY_SIZE bytes */
void identity_sign(const struct identity *identity, const void *data, size_t size,
                   uint8_t out_signature[IDENTITY_SIGNATURE_SIZE]);

/* machine is 0 before the first enrolment. */
const struct enrolment *identity_enrolment(const struct identity *identity);
/* On disk before it counts. */
MUST_CHECK int identity_set_enrolment(struct identity *identity, const struct enrolment *enrolment,
                                      struct error *error);
