#include "net/tls_certificate.h"
#include "testing/testing.h"

#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const NAMES[] = {"souk.example", "localhost", "127.0.0.1", "::1"};

struct folder {
    char path[64];
    char certificate[96];
    char key[96];
};

static void folder_open(struct folder *folder)
{
    snprintf(folder->path, sizeof(folder->path), "/tmp/souk-certificate-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->certificate, sizeof(folder->certificate), "%s/a.crt", folder->path);
    snprintf(folder->key, sizeof(folder->key), "%s/a.key", folder->path);
}

static void folder_close(const struct folder *folder)
{
    unlink(folder->certificate);
    unlink(folder->key);
    rmdir(folder->path);
}

TEST(a_made_certificate_names_its_hosts_and_addresses)
{
    struct error error = {0};
    struct tls_certificate certificate AUTO_TLS_CERTIFICATE;
    tls_certificate_init(&certificate);
    ASSERT_OK(tls_certificate_make(NAMES, 4, &certificate, &error));

    BIO *bio = BIO_new_mem_buf(certificate.certificate_pem.data, -1);
    X509 *x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(x509);
    assert_int_equal(X509_check_host(x509, "localhost", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(x509, "other.example", 0, 0, NULL), 0);
    assert_int_equal(X509_check_ip_asc(x509, "127.0.0.1", 0), 1);
    assert_int_equal(X509_check_ip_asc(x509, "::1", 0), 1);
    assert_int_equal(X509_verify(x509, X509_get0_pubkey(x509)), 1);
    assert_true(X509_cmp_current_time(X509_get0_notBefore(x509)) < 0);
    assert_true(X509_cmp_current_time(X509_get0_notAfter(x509)) > 0);
    X509_free(x509);
}

TEST(a_written_certificate_is_read_with_the_same_fingerprint)
{
    struct error error = {0};
    struct folder folder;
    folder_open(&folder);
    struct tls_certificate made AUTO_TLS_CERTIFICATE;
    struct tls_certificate again AUTO_TLS_CERTIFICATE;
    tls_certificate_init(&made);
    tls_certificate_init(&again);
    ASSERT_OK(tls_certificate_make(NAMES, 4, &made, &error));
    ASSERT_OK(tls_certificate_write(&made, folder.certificate, folder.key, &error));
    struct stat status;
    assert_int_equal(stat(folder.key, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    ASSERT_OK(tls_certificate_read(folder.certificate, folder.key, &again, &error));
    assert_string_equal(made.fingerprint, again.fingerprint);
    assert_int_equal(strlen(made.fingerprint), 64);
    ASSERT_FAILS(tls_certificate_write(&made, folder.certificate, folder.key, &error),
                 ERROR_CONFLICT);
    folder_close(&folder);
}

TEST(a_key_of_another_certificate_is_refused)
{
    struct error error = {0};
    struct folder first;
    struct folder second;
    folder_open(&first);
    folder_open(&second);
    struct tls_certificate one AUTO_TLS_CERTIFICATE;
    struct tls_certificate two AUTO_TLS_CERTIFICATE;
    tls_certificate_init(&one);
    tls_certificate_init(&two);
    ASSERT_OK(tls_certificate_make(NAMES, 1, &one, &error));
    ASSERT_OK(tls_certificate_make(NAMES, 1, &two, &error));
    assert_string_not_equal(one.fingerprint, two.fingerprint);
    ASSERT_OK(tls_certificate_write(&one, first.certificate, first.key, &error));
    ASSERT_OK(tls_certificate_write(&two, second.certificate, second.key, &error));
    ASSERT_FAILS(tls_certificate_read(first.certificate, second.key, &one, &error), ERROR_INVALID);
    ASSERT_FAILS(tls_certificate_read(first.key, second.key, &one, &error), ERROR_INVALID);
    ASSERT_FAILS(tls_certificate_read("/nonexistent", second.key, &one, &error), ERROR_NOT_FOUND);
    folder_close(&first);
    folder_close(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_made_certificate_names_its_hosts_and_addresses),
        cmocka_unit_test(a_written_certificate_is_read_with_the_same_fingerprint),
        cmocka_unit_test(a_key_of_another_certificate_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
