/*
 * Place: where data lie, as people write it.
 *
 *     https://host/rows.csv       a web server's file
 *     s3://bucket/rows.csv        an object in Amazon S3, or what speaks like it
 *     hdfs://namenode/rows.csv    a file in Hadoop, by WebHDFS at port 9870; a port is not looked
 * at webhdfs://namenode:50070/x  the same with the port of WebHDFS; swebhdfs:// by HTTPS
 *     file:///home/me/rows.csv    a file here
 *
 * "#sha256=64 hex digits" behind it is the hash that the bytes must have. User names and passwords
 * in an address are refused: addresses are shown and stored.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLACE_SIZE_MAX = 2048, PLACE_NAME_SIZE = 96, PLACE_HASH_SIZE = 32 };

enum place_kind { PLACE_FILE, PLACE_HTTP, PLACE_S3, PLACE_HDFS, PLACE_KIND_COUNT };

/* Its texts lie in the address that was parsed. */
struct place {
    enum place_kind kind;
    bool is_secure;        /* HTTPS is spoken: https, s3 without an endpoint of its own, swebhdfs */
    struct text authority; /* host and port; of S3 the bucket; of a file empty */
    struct text path;      /* begins with a slash; of http as it is sent, else plain UTF-8 */
    struct text query;     /* of http, without the question mark; it may be a secret */
    bool has_hash;
    uint8_t hash[PLACE_HASH_SIZE]; /* SHA-256 */
};

/* Whether the text is meant as an address: letters, then "://". peer:// is one of the job file's
 * own and is none here. */
bool place_is_address(struct text text);

/* INVALID, with one sentence, for what is no such address. */
MUST_CHECK int place_parse(struct text address, struct place *out_place, struct error *error);

/* Scheme, host and the end of the path, for people: without query and hash. Returns `out`. */
const char *place_describe(struct text address, char out[PLACE_NAME_SIZE]);

/* The last name of the path; empty for a folder's, which ends in a slash. */
struct text place_file_name(const struct place *place);
bool place_is_folder(const struct place *place);
