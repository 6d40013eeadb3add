/* Inside of the sync host: sync_host.c has the links and rounds, sync_host_train.c the server. */
#pragma once

#include "base/list.h"
#include "library/sync_host.h"
#include "library/sync_message.h"
#include "library/sync_rounds.h"

#include <pthread.h>

/* One link, of a rank or of somebody who has yet to say which. */
struct host_link {
    struct list_node node;
    struct sync_host *host;
    struct link *link;
    bool has_said_hello;
    struct sync_hello hello;
    int64_t heard_ns;
    bool is_calling; /* CALL came, its bytes not all */
    bool is_wanted;  /* they are */
    struct sync_call call;
    uint64_t waits_for; /* the round; 0: none */
    uint8_t *bytes;
    size_t received;
    bool is_sending_model;
    bool must_drop; /* by host_sweep */
};

struct host_rank {
    struct host_link *link; /* NULL: it is away */
    uint64_t process;       /* that came last */
    int64_t away_ns;        /* since when */
    int64_t patience_ms;    /* how long it is waited for */
    bool is_given_up, has_left;
};

/* The mean of what ranks say of their losses stands for the model's. */
struct host_loss {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_known[SYNC_WORLD_MAX];
    double losses[SYNC_WORLD_MAX];
    bool is_closing;
};

struct sync_host {
    struct sync_host_options options;
    int listen_fd, exchange_fd;
    struct loop_watch *listen_watch, *exchange_watch;
    uint16_t exchange_port;
    struct list links;
    struct host_rank ranks[SYNC_WORLD_MAX];
    struct sync_rounds *rounds;
    struct loop_timer *timer;
    int64_t ticked_ns;

    struct sync_host_training training;
    bool is_training, is_open;
    struct exchange_server *server;
    uint64_t term;
    struct host_link *asked; /* for its model */
    int64_t asked_ns;
    bool was_asked[SYNC_WORLD_MAX];
    float *model; /* that comes */
    size_t model_received;
    struct host_loss loss;
    bool has_failed;
    char failure[256];
};

int64_t host_now_ns(const struct sync_host *host);
void host_send(struct host_link *link, const struct sync_message *message);
void host_changed(struct sync_host *host);
void host_sweep(struct sync_host *host);

/* --- sync_host_train.c --- */

MUST_CHECK int host_exchange_listen(struct sync_host *host, struct error *error);
/* A model that was asked for comes, or a piece of it. */
MUST_CHECK int host_model_take(struct host_link *link, const struct sync_model *model,
                               struct error *error);
MUST_CHECK int host_model_data(struct host_link *link, struct text data, struct error *error);
/* The link is lost, or its model too long in coming. */
void host_model_lost(struct host_link *link);
void host_train_tick(struct sync_host *host);
/* To a rank that has just come. */
void host_train_tell(struct host_link *link);
