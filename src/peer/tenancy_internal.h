/* Tenancy, inside: shared by tenancy.c (life), tenancy_child.c (the process), tenancy_log.c (what
 * it prints) and tenancy_stream.c (its streams). */
#pragma once

#include "base/list.h"
#include "peer/function_share.h"
#include "peer/image_cache.h"
#include "peer/job_network.h"
#include "peer/log_server.h"
#include "peer/logbook.h"
#include "peer/meter.h"
#include "peer/open_network.h"
#include "peer/shard.h"
#include "peer/stream.h"
#include "peer/tenancy.h"
#include "peer/upload.h"
#include "runtime/child_message.h"
#include "sandbox/folder.h"

#include <limits.h>

/* Who is at the other end of a stream. */
struct tenancy_peer {
    uint64_t lease, fence;
    enum lease_role role;
    uint32_t rank;
};

struct tenancy_stream {
    struct list_node node;
    struct tenancy *tenancy;
    struct tenancy_peer peer;
    struct stream *stream;
    int ready_fd; /* connected, waiting for the child's configuration; -1: none */
};

struct tenancy_upload {
    struct list_node node;
    struct tenancy *tenancy;
    struct upload *upload; /* NULL: it waits for others */
    struct text name;      /* in the tenancy's arena */
    bool is_stale;         /* the file was announced again meanwhile */
};

enum { TENANCY_IMAGE_FILES_MAX = 500000, TENANCY_STORE_PARTS = 4 };

enum tenancy_stream_name { TENANCY_STDOUT, TENANCY_STDERR, TENANCY_LOG_COUNT };

struct tenancy_log {
    struct tenancy *tenancy;
    int fd; /* -1 after its end */
    struct loop_watch *watch;
};

/* tenancy_checkpoint.c's: what a borrower's program asked for before it starts. */
struct tenancy_checkpoints {
    bool is_wanted;
    uint8_t manifests[CHILD_CHECKPOINT_COUNT][CHILD_HASH_SIZE]; /* that it has */
    struct checkpoints_message found;
    struct lease_data data[CHILD_CHECKPOINT_COUNT]; /* that is fetched */
    size_t data_kinds[CHILD_CHECKPOINT_COUNT];      /* whose it is: both may be the same bytes */
    size_t data_count;
    uint64_t answer_count;
    struct shard *shard;
    struct loop_timer *timer; /* until the market is asked again */
};

/* Packages are listed and fetched before the last step, which installs them. */
enum tenancy_step { TENANCY_STEP_LAST, TENANCY_STEP_LIST, TENANCY_STEP_FETCH };

struct tenancy {
    struct tenancy_host *host;
    tenancy_ended_function *on_ended;
    void *context;

    struct arena *arena;
    struct text lease_json;
    struct lease_document document;
    uint8_t key[LEASE_KEY_SIZE];
    char *secrets; /* of the job, until its process has them; NULL: none */
    char *token;
    struct child_peer *peers; /* of a parameter server: who dials it */
    uint32_t peer_count;
    char data_folder[PATH_MAX];
    char lease_folder[PATH_MAX];
    char out_folder[PATH_MAX];

    enum lease_run_state state;
    enum yield_level yield;
    enum yield_level yield_wanted; /* by the owner, also while nothing runs that could yield */
    struct image_hold image;       /* the lease runs in it or with it; none: it brought nothing */
    uint8_t image_key[IMAGE_HASH_SIZE];
    bool needs_image;                     /* it has to be unpacked first */
    enum tenancy_step step;               /* of what unpacks it */
    bool has_begun;                       /* its own process was started */
    bool has_printed;                     /* what unpacked it has something for the log */
    int unpack_fd;                        /* what whoever unpacks it says; -1: nobody does */
    int reserve_fd;                       /* of image_cache_reserve */
    struct loop_timer *look_timer;        /* while it is unpacked, here or by another lease */
    const struct lease_data *wanted_data; /* of the lease's, to be fetched */
    size_t wanted_count;
    struct shard *shard;
    struct list streams; /* struct tenancy_stream */
    uint64_t ended_bytes_in, ended_bytes_out;
    struct list uploads;                              /* struct tenancy_upload */
    struct text artifact_names[TENANCY_ARTIFACT_MAX]; /* each file ever announced */
    uint32_t artifact_count;

    struct tenancy_checkpoints checkpoints;

    struct job_network *network;       /* NULL: the lease has none */
    struct open_network *internet;     /* NULL: the lease has none */
    struct chunk_peers *chunk_peers;   /* NULL: the job has no other workers */
    struct chunk_server *chunk_server; /* NULL: nobody may connect */
    struct chunk_counts chunk_counts;
    struct sandbox *sandbox;
    struct loop_watch *exit_watch;
    int control_fd;
    struct loop_watch *control_watch;
    struct tenancy_log logs[TENANCY_LOG_COUNT];
    struct logbook logbook;
    struct log_server *log_server; /* NULL: nobody may connect */
    struct loop_timer *log_timer;  /* how long a market that is there may take to keep the rest */
    bool is_log_given_up;
    int64_t talk_bytes; /* what the process may still say; below zero nobody listens */
    int64_t talk_ns;    /* when that was reckoned */
    struct loop_timer *talk_timer;
    bool has_config; /* sent to the child */
    bool has_exited;
    struct sandbox_exit exit;
    bool has_done; /* the child said DONE */
    bool is_done_ok;
    char reason[LEASE_REASON_SIZE_MAX + 1]; /* the first that was given */
    bool is_stop_wanted;
    bool is_reclaimed; /* by the owner, before it was done */
    bool is_leaving;   /* the owner wants it gone, done or not: nothing waits for the market */
    bool has_failed;
    bool has_ended;
    bool is_cleared; /* and nothing of it is left that is taken away */

    struct tenancy_functions *functions; /* NULL: its own process does the work */

    bool is_metering;
    struct meter meter;
    struct loop_timer *tick_timer;
    struct loop_timer *pace_timer;
    struct loop_timer *kill_timer;
    struct loop_timer *expiry_timer;
    struct loop_timer *breath_timer;
    bool is_breathing; /* frozen, and let go for a moment */
    struct loop_timer *end_timer;
};

int64_t tenancy_now_ns(const struct tenancy *tenancy);
/* Keeps the first reason only: what comes after is its consequence. */
void tenancy_set_reason(struct tenancy *tenancy, struct text reason);

/* tenancy_end.c */
/* Ends the lease as failed. */
void tenancy_fail(struct tenancy *tenancy, const struct error *reason);
/* Sends the last state when nothing is left to wait for. */
void tenancy_check_end(struct tenancy *tenancy);
/* Of its timers. */
void tenancy_on_grace_over(void *context);
void tenancy_on_expiry(void *context);
void tenancy_on_end(void *context);

/* tenancy_function.c */
/* Where the machine's functions do the work of a worker. */
MUST_CHECK int tenancy_open_functions(struct tenancy *tenancy, struct error *error);
/* None is under way after it, nor made again. */
void tenancy_end_calls(struct tenancy *tenancy);
/* Takes away what functions elsewhere were brought; false: there is nothing to wait for. */
bool tenancy_clear_functions(struct tenancy *tenancy, void (*on_cleared)(void *context));
void tenancy_free_functions(struct tenancy *tenancy);
uint32_t tenancy_function_count(const struct tenancy *tenancy);
/* What of the lease its own process has; NULL: all. */
const struct function_share *tenancy_function_share(const struct tenancy *tenancy);
const char *tenancy_function_store(const struct tenancy *tenancy); /* a folder; NULL: none */
/* The store's folders, as the lease's process sees them in /functions. */
void tenancy_function_mounts(const struct tenancy *tenancy,
                             struct sandbox_mount out[TENANCY_STORE_PARTS]);

/* tenancy_call.c */
void tenancy_call_function(struct tenancy *tenancy, uint32_t number, struct text request);
/* How long they were called so far, all together as one. */
int64_t tenancy_called_ms(const struct tenancy *tenancy);
void tenancy_yield_functions(struct tenancy *tenancy, enum yield_level level);

/* tenancy_meter.c */
struct meter_usage tenancy_usage(struct tenancy *tenancy);
/* It runs, and is metered from now on. */
void tenancy_set_running(struct tenancy *tenancy);
void tenancy_on_tick(void *context);
/* Tells the last of it. */
void tenancy_stop_meter(struct tenancy *tenancy);

/* tenancy_child.c */
/* What the lease's own process has of it. */
int64_t tenancy_own_milli(const struct tenancy *tenancy);
int64_t tenancy_own_bytes(const struct tenancy *tenancy);
MUST_CHECK int tenancy_start_child(struct tenancy *tenancy, struct error *error);
void tenancy_send_config(struct tenancy *tenancy);
/* Tells the child; a child that does not read fails its lease. */
void tenancy_tell_child(struct tenancy *tenancy, const struct child_message *message);
/* False: it has no room for it just now. */
bool tenancy_offer_to_child(struct tenancy *tenancy, const struct child_message *message);
void tenancy_update_reading(struct tenancy *tenancy);
void tenancy_on_talk(void *context);
/* What the process said is taken off what it may say in a second. */
void tenancy_count_talk(struct tenancy *tenancy, size_t size);
void tenancy_free_child(struct tenancy *tenancy);

/* tenancy_log.c */
MUST_CHECK int tenancy_open_log(struct tenancy *tenancy, enum tenancy_stream_name name,
                                int *out_write_fd, struct error *error);
void tenancy_close_logs(struct tenancy *tenancy);
void tenancy_update_log_reading(struct tenancy *tenancy);
/* A process before the lease's own is gone: reads what it left. */
void tenancy_pause_logs(struct tenancy *tenancy);
/* The process is gone: reads what it left. */
void tenancy_end_logs(struct tenancy *tenancy);
/* Sends what the outbox takes. */
void tenancy_send_logs(struct tenancy *tenancy);
/* True when nothing printed waits for the market any more. */
bool tenancy_has_settled_logs(struct tenancy *tenancy);
void tenancy_give_up_logs(struct tenancy *tenancy, const char *reason);
void tenancy_on_log_timer(void *context);

/* tenancy_image.c */
/* Also says what of the lease's data is to be fetched. */
MUST_CHECK int tenancy_find_image(struct tenancy *tenancy, struct error *error);
/* Once its archive is there; the child is begun after it. */
MUST_CHECK int tenancy_unpack_image(struct tenancy *tenancy, struct error *error);
void tenancy_free_image(struct tenancy *tenancy);
/* Of all lenders' images, and of the one that is unpacked here. */
void tenancy_cache_folder(const struct tenancy *tenancy, char out[PATH_MAX]);
void tenancy_unpack_folder(const struct tenancy *tenancy, char out[PATH_MAX]);
/* The archive of what it brings to run in; NULL: it brings none. */
const struct lease_data *tenancy_brought_data(const struct tenancy *tenancy);
/* What of it was only for the way. */
MUST_CHECK int tenancy_remove_archive(struct tenancy *tenancy, struct error *error);
/* Runs what unpacks it; on its end the lease's own process begins, or the lease fails. */
MUST_CHECK int tenancy_start_unpacking(struct tenancy *tenancy, struct sandbox_options *options,
                                       struct error *error);
/* It is there: the lease's own process may start. */
void tenancy_begin_in_image(struct tenancy *tenancy);

/* tenancy_packages.c */
/* Has them fetched and installed, or waits while another lease does. */
MUST_CHECK int tenancy_install_packages(struct tenancy *tenancy, struct error *error);
/* They are listed, or fetched: does what follows. */
void tenancy_continue_packages(struct tenancy *tenancy);
/* Those that were fetched, each for itself: other jobs' lists may name them. */
void tenancy_keep_wheels(const struct tenancy *tenancy);
void tenancy_on_look(void *context);

/* Starts the lease's own process. */
MUST_CHECK int tenancy_begin_child(struct tenancy *tenancy, struct error *error);
/* Has what was just started yield as the daemon wants. */
void tenancy_keep_yield(struct tenancy *tenancy);

/* tenancy_network.c */
MUST_CHECK int tenancy_open_network(struct tenancy *tenancy, struct error *error);
/* Puts the lease's devices into its sandbox; see sandbox.h. */
int tenancy_set_up_network(void *context, pid_t inside, struct error *error);
/* Tells the market where the lease may be reached by its job's other ranks. */
void tenancy_send_addresses(struct tenancy *tenancy);

void tenancy_write_addresses(const struct host_port *found, size_t count,
                             char texts[][LEASE_ADDRESS_SIZE_MAX + 1],
                             struct addresses_message *addresses);

/* tenancy_source.c */
void tenancy_open_sources(struct tenancy *tenancy);
void tenancy_free_sources(struct tenancy *tenancy);
/* Tells the market where others of the job may fetch from. */
void tenancy_send_sources(struct tenancy *tenancy);
/* All data is here: nobody is asked any more. */
void tenancy_has_data(struct tenancy *tenancy);

/* tenancy_direct.c */
void tenancy_open_log_server(struct tenancy *tenancy);
/* Tells the market where what the lease prints may be read. */
void tenancy_send_log_addresses(struct tenancy *tenancy);
void tenancy_pump_readers(struct tenancy *tenancy);

/* tenancy_checkpoint.c */
void tenancy_want_checkpoints(struct tenancy *tenancy,
                              const uint8_t manifests[CHILD_CHECKPOINT_COUNT][CHILD_HASH_SIZE]);
/* Asks the market, once what is announced has been sent. */
void tenancy_ask_for_checkpoints(struct tenancy *tenancy);
/* Tells the program that a checkpoint of it was sent, or why it was not: exactly one is set. */
void tenancy_checkpoint_sent(struct tenancy *tenancy, struct text name,
                             const struct upload_result *result, const struct error *reason);
void tenancy_free_checkpoints(struct tenancy *tenancy);

/* tenancy_stream.c */
void tenancy_dial(struct tenancy *tenancy, const struct tenancy_peer *peer,
                  const uint8_t ticket[LEASE_TICKET_SIZE]);
/* Hands over the streams that came up before the child had its configuration. */
void tenancy_hand_streams(struct tenancy *tenancy);
void tenancy_free_streams(struct tenancy *tenancy);
void tenancy_start_upload(struct tenancy *tenancy, struct text announced);
void tenancy_free_uploads(struct tenancy *tenancy);
/* What keeps results from being sent; NULL: nothing has failed. */
const char *tenancy_upload_trouble(const struct tenancy *tenancy);
struct chunk_access tenancy_chunk_access(struct tenancy *tenancy);
int64_t tenancy_disk_bytes(const struct tenancy *tenancy);

/* tenancy_yield.c */
void tenancy_on_breath(void *context);
/* To end in good order it has to run, and its turn must not come after everybody else's. */
void tenancy_yield_to_end(struct tenancy *tenancy);
