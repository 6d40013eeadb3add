/*
 * S3 answer: what Amazon S3's XML says of what a bucket holds under a prefix.
 *
 *     <ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>...
 *         <Contents><Key>a%2Fb.csv</Key><Size>12</Size>...</Contents>...</ListBucketResult>
 *
 * Lists are asked for with encoding-type=url, so that their keys hold no markup. Strangers wrote
 * it: nothing is read outside the text, and what is not as above is not found.
 */
#pragma once

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct s3_object {
    struct text key; /* with %XX */
    uint64_t size;
};

/* The next object; *rest is what follows it. False: there is none, or it has no key or size. */
bool s3_answer_next(struct text *rest, struct s3_object *out_object);
