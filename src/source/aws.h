/*
 * AWS: what requests to its services have in common: names and keys in addresses, who signs, and
 * why keys are refused.
 */
#pragma once

#include "base/buffer.h"
#include "net/http_client.h"
#include "source/remote.h"

/* Appends the text with every byte but letters, digits, "-._~" and those of `kept` as %XX. */
void aws_encode(struct text text, const char *kept, struct buffer *out);

const char *aws_region(const struct remote_credentials *credentials); /* us-east-1: none given */
/* Borrows the credentials, which have keys. */
struct http_signing aws_signing(const struct remote_credentials *credentials, const char *service);

/* What a refusal's code means that every service may answer with: fills the error and is true. */
bool aws_explain(struct text code, struct error *error);
