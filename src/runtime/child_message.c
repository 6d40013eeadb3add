/*
 * Child messages: the packets, all integers little-endian (wire/wire.h):
 *
 *     u8 version (6), u8 kind, then by kind
 *     CONFIG    text lease JSON, 32 bytes key, text secrets, u32 count, count times PEER's fields
 *     STREAM    u64 peer lease, u64 peer fence, u8 role, u32 rank; one descriptor travels with the
 *               packet (SCM_RIGHTS)
 *     PEER      u64 lease, u64 fence, u8 role, u32 rank, 32 bytes key
 *     STOP      u32 grace_ms, bool is_handover, text reason
 *     READY     nothing
 *     REPORT    text JSON
 *     ARTIFACT  text name
 *     DONE      bool is_ok, text message
 *     CHECKPOINTS  twice (text name or empty, 32 bytes manifest), text trouble
 *     KEPT      text name, 32 bytes manifest, text trouble
 *     WANTED    twice 32 bytes manifest
 *     CALL      u32 number, text JSON
 *     CALLED    u32 number, bool is_ok, text JSON
 */
#include "runtime/child_message.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/scope.h"
#include "wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CHILD_VERSION = 6, FDS_MAX = 4 };

static const struct json_field worker_report_fields[] = {
    {"steps", JSON_U64, offsetof(struct worker_report, steps), .is_required = true},
    {"samples", JSON_U64, offsetof(struct worker_report, samples), .is_required = true},
    {"commits", JSON_U64, offsetof(struct worker_report, commits), .is_required = true},
    {"loss", JSON_DOUBLE, offsetof(struct worker_report, loss)},
    {"steps_per_second", JSON_DOUBLE, offsetof(struct worker_report, steps_per_second)},
    {"commit_ms", JSON_DOUBLE, offsetof(struct worker_report, commit_ms)},
    {"period_us", JSON_I64, offsetof(struct worker_report, period_us)},
    {"local_steps", JSON_U64, offsetof(struct worker_report, local_steps)},
    {"compute_ms", JSON_DOUBLE, offsetof(struct worker_report, compute_ms)},
    {"transfer_ms", JSON_DOUBLE, offsetof(struct worker_report, transfer_ms)},
    {"wait_ms", JSON_DOUBLE, offsetof(struct worker_report, wait_ms)},
    {"first_step_ms", JSON_I64, offsetof(struct worker_report, first_step_ms)},
    {"sent_bytes", JSON_U64, offsetof(struct worker_report, sent_bytes)},
    {"received_bytes", JSON_U64, offsetof(struct worker_report, received_bytes)},
};
const struct json_schema worker_report_schema =
    JSON_SCHEMA("worker report", worker_report_fields, struct worker_report);

static const struct json_field server_report_worker_fields[] = {
    {"lease", JSON_U64, offsetof(struct server_report_worker, lease), .is_required = true},
    {"fence", JSON_U64, offsetof(struct server_report_worker, fence), .is_required = true},
    {"is_member", JSON_BOOL, offsetof(struct server_report_worker, is_member)},
    {"steps", JSON_U64, offsetof(struct server_report_worker, steps)},
    {"samples", JSON_U64, offsetof(struct server_report_worker, samples)},
    {"commits", JSON_U64, offsetof(struct server_report_worker, commits)},
    {"accepted_pushes", JSON_U64, offsetof(struct server_report_worker, accepted_pushes)},
    {"steps_per_second", JSON_DOUBLE, offsetof(struct server_report_worker, steps_per_second)},
    {"share", JSON_DOUBLE, offsetof(struct server_report_worker, share)},
    {"codec", JSON_CHARS, offsetof(struct server_report_worker, codec),
     .size_max = REPORT_CODEC_SIZE},
    {"clipped", JSON_U64, offsetof(struct server_report_worker, clipped), .is_zero_omitted = true},
    {"refused", JSON_U64, offsetof(struct server_report_worker, refused), .is_zero_omitted = true},
    {"is_faulty", JSON_BOOL, offsetof(struct server_report_worker, is_faulty),
     .is_zero_omitted = true},
    {"fault", JSON_CHARS, offsetof(struct server_report_worker, fault),
     .size_max = sizeof(((struct server_report_worker *)0)->fault)},
    {"agreeing_first", JSON_U64, offsetof(struct server_report_worker, agreeing[0]),
     .is_zero_omitted = true},
    {"agreeing_second", JSON_U64, offsetof(struct server_report_worker, agreeing[1]),
     .is_zero_omitted = true},
};
static const struct json_schema server_report_worker_schema =
    JSON_SCHEMA("worker", server_report_worker_fields, struct server_report_worker);

static const struct json_field server_report_fields[] = {
    {"elapsed_ms", JSON_I64, offsetof(struct server_report, elapsed_ms), .is_required = true},
    {"version", JSON_U64, offsetof(struct server_report, version), .is_required = true},
    {"steps", JSON_U64, offsetof(struct server_report, steps)},
    {"samples", JSON_U64, offsetof(struct server_report, samples)},
    {"epochs", JSON_DOUBLE, offsetof(struct server_report, epochs)},
    {"loss_evaluations", JSON_U64, offsetof(struct server_report, loss_evaluations)},
    {"loss", JSON_DOUBLE, offsetof(struct server_report, loss)},
    {"accuracy_evaluations", JSON_U64, offsetof(struct server_report, accuracy_evaluations)},
    {"test_accuracy", JSON_DOUBLE, offsetof(struct server_report, test_accuracy)},
    {"test_loss", JSON_DOUBLE, offsetof(struct server_report, test_loss)},
    {"policy", JSON_CHARS, offsetof(struct server_report, policy), .size_max = REPORT_POLICY_SIZE},
    {"policy_in_force", JSON_CHARS, offsetof(struct server_report, policy_in_force),
     .size_max = REPORT_POLICY_SIZE},
    {"policy_reason", JSON_CHARS, offsetof(struct server_report, policy_reason),
     .size_max = REPORT_REASON_SIZE},
    {"gamma_ms", JSON_I64, offsetof(struct server_report, gamma_ms)},
    {"commit_target", JSON_DOUBLE, offsetof(struct server_report, commit_target)},
    {"commit_rate", JSON_DOUBLE, offsetof(struct server_report, commit_rate)},
    {"implicit_momentum", JSON_DOUBLE, offsetof(struct server_report, implicit_momentum)},
    {"is_searching", JSON_BOOL, offsetof(struct server_report, is_searching)},
    {"checks", JSON_U64, offsetof(struct server_report, checks), .is_zero_omitted = true},
    {"checks_undecided", JSON_U64, offsetof(struct server_report, checks_undecided),
     .is_zero_omitted = true},
    {"workers_wanted", JSON_U64, offsetof(struct server_report, workers_wanted),
     .is_zero_omitted = true},
    {"is_final", JSON_BOOL, offsetof(struct server_report, is_final)},
    {"workers", JSON_ARRAY, offsetof(struct server_report, workers), .is_required = true,
     .size_max = CHILD_PEER_MAX, .schema = &server_report_worker_schema},
};
const struct json_schema server_report_schema =
    JSON_SCHEMA("server report", server_report_fields, struct server_report);

int child_socket_pair(int out_sockets[2], struct error *error)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return error_set_errno(error, errno, "open a socket pair");
    AUTO_FD int parent = sockets[0];
    AUTO_FD int child = sockets[1];
    /* A packet must fit the send buffer whole; the kernel doubles the figure for its own needs. */
    const int size = CHILD_PACKET_MAX;
    if (setsockopt(parent, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) < 0 ||
        setsockopt(child, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) < 0)
        return error_set_errno(error, errno, "set a socket's buffer");
    const int flags = fcntl(parent, F_GETFL);
    if (flags < 0 || fcntl(parent, F_SETFL, flags | O_NONBLOCK) < 0)
        return error_set_errno(error, errno, "make a socket non-blocking");
    out_sockets[0] = TAKE_FD(parent);
    out_sockets[1] = TAKE_FD(child);
    return 0;
}

static void place_encode(struct buffer *packet, enum lease_role role, uint32_t rank)
{
    ASSERT(role < LEASE_ROLE_COUNT);
    wire_put_u8(packet, (uint8_t)role);
    wire_put_u32(packet, rank);
}

static void place_decode(struct wire_reader *reader, enum lease_role *role, uint32_t *rank)
{
    const uint8_t number = wire_get_u8(reader);
    if (number >= LEASE_ROLE_COUNT)
        wire_reader_fail(reader, "unknown role");
    else
        *role = (enum lease_role)number;
    *rank = wire_get_u32(reader);
}

static void peer_encode(struct buffer *packet, const struct child_peer *peer)
{
    wire_put_u64(packet, peer->lease);
    wire_put_u64(packet, peer->fence);
    place_encode(packet, peer->role, peer->rank);
    wire_put_raw(packet, peer->key, sizeof peer->key);
}

static void peer_decode(struct wire_reader *reader, struct child_peer *peer)
{
    peer->lease = wire_get_u64(reader);
    peer->fence = wire_get_u64(reader);
    place_decode(reader, &peer->role, &peer->rank);
    wire_get_raw(reader, peer->key, sizeof peer->key);
}

static void checkpoint_encode(struct buffer *packet, const struct child_checkpoint *checkpoint)
{
    ASSERT(checkpoint->name.size <= CHILD_NAME_MAX);
    wire_put_text(packet, checkpoint->name);
    wire_put_raw(packet, checkpoint->manifest, CHILD_HASH_SIZE);
}

void child_message_encode(struct buffer *packet, const struct child_message *message)
{
    wire_put_u8(packet, CHILD_VERSION);
    wire_put_u8(packet, (uint8_t)message->kind);
    switch (message->kind) {
    case CHILD_CONFIG:
        ASSERT(message->config.lease_json.size <= CHILD_LEASE_JSON_MAX);
        ASSERT(message->config.peer_count <= CHILD_PEER_MAX);
        wire_put_text(packet, message->config.lease_json);
        ASSERT(message->config.secrets.size <= CHILD_SECRETS_MAX);
        wire_put_raw(packet, message->config.key, CHILD_KEY_SIZE);
        wire_put_text(packet, message->config.secrets);
        wire_put_u32(packet, message->config.peer_count);
        for (uint32_t i = 0; i < message->config.peer_count; i++)
            peer_encode(packet, &message->config.peers[i]);
        break;
    case CHILD_STREAM:
        wire_put_u64(packet, message->stream.peer_lease);
        wire_put_u64(packet, message->stream.peer_fence);
        place_encode(packet, message->stream.peer_role, message->stream.peer_rank);
        break;
    case CHILD_PEER:
        peer_encode(packet, &message->peer);
        break;
    case CHILD_STOP:
        ASSERT(message->stop.reason.size <= CHILD_TEXT_MAX);
        wire_put_u32(packet, message->stop.grace_ms);
        wire_put_bool(packet, message->stop.is_handover);
        wire_put_text(packet, message->stop.reason);
        break;
    case CHILD_READY:
        break;
    case CHILD_REPORT:
        ASSERT(message->report.json.size <= CHILD_REPORT_MAX);
        wire_put_text(packet, message->report.json);
        break;
    case CHILD_ARTIFACT:
        ASSERT(result_name_is_good(message->artifact.name));
        wire_put_text(packet, message->artifact.name);
        break;
    case CHILD_DONE:
        ASSERT(message->done.message.size <= CHILD_TEXT_MAX);
        wire_put_bool(packet, message->done.is_ok);
        wire_put_text(packet, message->done.message);
        break;
    case CHILD_WANTED:
        wire_put_raw(packet, message->wanted.manifests, sizeof message->wanted.manifests);
        break;
    case CHILD_CHECKPOINTS:
        ASSERT(message->checkpoints.trouble.size <= CHILD_TEXT_MAX);
        for (size_t i = 0; i < CHILD_CHECKPOINT_COUNT; i++)
            checkpoint_encode(packet, &message->checkpoints.items[i]);
        wire_put_text(packet, message->checkpoints.trouble);
        break;
    case CHILD_KEPT:
        ASSERT(message->kept.trouble.size <= CHILD_TEXT_MAX);
        ASSERT(result_name_is_good(message->kept.name));
        wire_put_text(packet, message->kept.name);
        wire_put_raw(packet, message->kept.manifest, CHILD_HASH_SIZE);
        wire_put_text(packet, message->kept.trouble);
        break;
    case CHILD_CALL:
        ASSERT(message->call.json.size <= CHILD_CALL_MAX);
        wire_put_u32(packet, message->call.number);
        wire_put_text(packet, message->call.json);
        break;
    case CHILD_CALLED:
        ASSERT(message->called.json.size <= CHILD_CALL_MAX);
        wire_put_u32(packet, message->called.number);
        wire_put_bool(packet, message->called.is_ok);
        wire_put_text(packet, message->called.json);
        break;
    }
}

static void config_decode(struct arena *arena, struct wire_reader *reader,
                          struct child_config *config)
{
    config->lease_json = wire_get_text(reader, CHILD_LEASE_JSON_MAX);
    wire_get_raw(reader, config->key, sizeof config->key);
    config->secrets = wire_get_text(reader, CHILD_SECRETS_MAX);
    config->peer_count = wire_get_count(reader, CHILD_PEER_MAX, 21 + CHILD_KEY_SIZE);
    struct child_peer *peers = arena_alloc(arena, (config->peer_count + 1) * sizeof *peers);
    for (uint32_t i = 0; i < config->peer_count; i++)
        peer_decode(reader, &peers[i]);
    config->peers = peers;
}

static struct text name_decode(struct wire_reader *reader)
{
    const struct text name = wire_get_text(reader, CHILD_NAME_MAX);
    if (!wire_reader_is_failed(reader) && !result_name_is_good(name))
        wire_reader_fail(reader, "an artifact's name is none");
    return name;
}

static void checkpoint_decode(struct wire_reader *reader, struct child_checkpoint *checkpoint)
{
    checkpoint->name = wire_get_text(reader, CHILD_NAME_MAX);
    if (checkpoint->name.size > 0 && !wire_reader_is_failed(reader) &&
        !result_name_is_good(checkpoint->name))
        wire_reader_fail(reader, "a checkpoint's name is none");
    wire_get_raw(reader, checkpoint->manifest, CHILD_HASH_SIZE);
}

static void body_decode(struct arena *arena, struct wire_reader *reader,
                        struct child_message *message)
{
    switch (message->kind) {
    case CHILD_CONFIG:
        config_decode(arena, reader, &message->config);
        return;
    case CHILD_STREAM:
        message->stream.peer_lease = wire_get_u64(reader);
        message->stream.peer_fence = wire_get_u64(reader);
        place_decode(reader, &message->stream.peer_role, &message->stream.peer_rank);
        message->stream.fd = -1;
        return;
    case CHILD_PEER:
        peer_decode(reader, &message->peer);
        return;
    case CHILD_STOP:
        message->stop.grace_ms = wire_get_u32(reader);
        message->stop.is_handover = wire_get_bool(reader);
        message->stop.reason = wire_get_text(reader, CHILD_TEXT_MAX);
        return;
    case CHILD_READY:
        return;
    case CHILD_REPORT:
        message->report.json = wire_get_text(reader, CHILD_REPORT_MAX);
        return;
    case CHILD_ARTIFACT:
        message->artifact.name = name_decode(reader);
        return;
    case CHILD_WANTED:
        wire_get_raw(reader, message->wanted.manifests, sizeof message->wanted.manifests);
        return;
    case CHILD_CHECKPOINTS:
        for (size_t i = 0; i < CHILD_CHECKPOINT_COUNT; i++)
            checkpoint_decode(reader, &message->checkpoints.items[i]);
        message->checkpoints.trouble = wire_get_text(reader, CHILD_TEXT_MAX);
        return;
    case CHILD_KEPT:
        message->kept.name = name_decode(reader);
        wire_get_raw(reader, message->kept.manifest, CHILD_HASH_SIZE);
        message->kept.trouble = wire_get_text(reader, CHILD_TEXT_MAX);
        return;
    case CHILD_CALL:
        message->call.number = wire_get_u32(reader);
        message->call.json = wire_get_text(reader, CHILD_CALL_MAX);
        return;
    case CHILD_CALLED:
        message->called.number = wire_get_u32(reader);
        message->called.is_ok = wire_get_bool(reader);
        message->called.json = wire_get_text(reader, CHILD_CALL_MAX);
        return;
    case CHILD_DONE:
        message->done.is_ok = wire_get_bool(reader);
        message->done.message = wire_get_text(reader, CHILD_TEXT_MAX);
        return;
    }
    wire_reader_fail(reader, "unknown kind");
}

int child_message_decode(struct arena *arena, struct text packet, struct child_message *out_message,
                         struct error *error)
{
    struct wire_reader reader;
    wire_reader_init(&reader, packet);
    if (wire_get_u8(&reader) != CHILD_VERSION)
        wire_reader_fail(&reader, "unknown version");
    struct child_message message = {.kind = wire_get_u8(&reader)};
    if (!wire_reader_is_failed(&reader))
        body_decode(arena, &reader, &message);
    if (wire_reader_finish(&reader, "child message", error) < 0)
        return -1;
    *out_message = message;
    return 0;
}

static int wait_writable(int socket, int timeout_ms, struct error *error)
{
    struct pollfd poll_fd = {.fd = socket, .events = POLLOUT};
    int ready;
    do
        ready = poll(&poll_fd, 1, timeout_ms);
    while (ready < 0 && errno == EINTR);
    if (ready < 0)
        return error_set_errno(error, errno, "wait for the control socket");
    if (ready == 0)
        return error_set(error, ERROR_EXHAUSTED, "the control socket takes no more");
    return 0;
}

static int packet_send(int socket, const struct buffer *packet, int fd, int timeout_ms,
                       struct error *error)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {packet->data, packet->size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control.bytes;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    }
    for (;;) {
        const ssize_t sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) {
            ASSERT((size_t)sent == packet->size);
            return 0;
        }
        if (errno == EPIPE || errno == ECONNRESET)
            return error_set(error, ERROR_UNAVAILABLE, "the control socket is closed");
        if (errno != EAGAIN && errno != EINTR)
            return error_set_errno(error, errno, "send on the control socket");
        if (errno == EAGAIN && wait_writable(socket, timeout_ms, error) < 0)
            return -1;
    }
}

int child_message_send(int socket, const struct child_message *message, int timeout_ms,
                       struct error *error)
{
    struct buffer packet AUTO_BUFFER;
    buffer_init_secret(&packet, CHILD_PACKET_MAX); /* keys, of the configuration */
    child_message_encode(&packet, message);
    const bool is_stream = message->kind == CHILD_STREAM;
    ASSERT(!is_stream || message->stream.fd >= 0);
    if (buffer_check(&packet, error) < 0)
        return -1;
    return packet_send(socket, &packet, is_stream ? message->stream.fd : -1, timeout_ms, error);
}

/* Keeps the first descriptor, closes any others. */
static int fd_take(struct msghdr *message)
{
    int kept = -1;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
            if (kept < 0)
                kept = fd;
            else
                close(fd);
        }
    }
    return kept;
}

int child_message_receive(int socket, struct arena *arena, struct child_message *out_message,
                          bool *out_has_ended, struct error *error)
{
    *out_has_ended = false;
    char *bytes = arena_alloc(arena, CHILD_PACKET_MAX);
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control = {0};
    struct iovec part = {bytes, CHILD_PACKET_MAX};
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control.bytes};
    /*
     * When the other side closes with messages of ours unread, the kernel reports a reset once,
     * before what it said is taken: its last words (DONE) lie behind the error.
     */
    ssize_t size;
    int reset_count = 0;
    do
        size = recvmsg(socket, &packet, MSG_CMSG_CLOEXEC);
    while (size < 0 && (errno == EINTR || (errno == ECONNRESET && reset_count++ == 0)));
    if (size < 0 && errno == EAGAIN)
        return error_set(error, ERROR_UNAVAILABLE, "no message yet");
    *out_has_ended = size == 0 || (size < 0 && errno == ECONNRESET);
    if (*out_has_ended)
        return error_set(error, ERROR_UNAVAILABLE, "the control socket is closed");
    if (size < 0)
        return error_set_errno(error, errno, "receive on the control socket");

    AUTO_FD int fd = fd_take(&packet);
    struct child_message message;
    if (packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        return error_set(error, ERROR_CORRUPT, "child message: too large");
    if (child_message_decode(arena, (struct text){bytes, (size_t)size}, &message, error) < 0)
        return -1;
    if ((message.kind == CHILD_STREAM) != (fd >= 0))
        return error_set(error, ERROR_CORRUPT, "child message: %s",
                         fd >= 0 ? "a descriptor that belongs to nothing" : "no descriptor");
    if (message.kind == CHILD_STREAM)
        message.stream.fd = TAKE_FD(fd);
    *out_message = message;
    return 0;
}
