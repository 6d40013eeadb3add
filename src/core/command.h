/*
 * Command: what the shell asks of the core. Borrowed for the call; texts are copied into events.
 *
 * Who may ask is the shell's matter (tokens and scopes); that the named things exist, belong
 * together and allow it is the core's.
 */
#pragma once

#include "market/job.h"

enum economy {
    ECONOMY_CREDITS, /* prices follow demand */
    ECONOMY_KARMA,   /* no money: market/karma.h */
    ECONOMY_COUNT,
};

struct core_settings {
    enum economy economy;                 /* fixed once an account has credits */
    int64_t karma_guarantee_basis_points; /* of an equal share: free for each member */
    int64_t grant_micro;                  /* a new account's first credits, from mint */
    int64_t grant_earned_micro; /* more of them, released credit for credit against lending */
    /* All first credits of a UTC day together, or a hundredth of all credits if that is more; the
     * accounts after that wait. 0: none but by invitation. */
    int64_t grant_daily_micro;
    int64_t dormant_ms;            /* not seen for so long: two notices, each followed by a step */
    int64_t dormant_step_ms;       /* from step to step */
    int64_t dormant_basis_points;  /* of what it has, back to mint with each step after them */
    int64_t fee_basis_points;      /* the operator's part of each post */
    int64_t proving_micro;         /* a machine that earned so much is proven; 0: all are */
    int64_t withheld_basis_points; /* of what one earns until then */
    int64_t silence_ms;            /* a heartbeat is late by so much: machine_silent is sent */
    int64_t lost_ms;               /* unreachable for so long: its leases are lost */
    int64_t start_ms;              /* a lease that does not run so long after its offer is lost */
    int64_t grace_ms;              /* from lease_stop_wanted until an open lease counts as lost */
    int64_t slot_offset_ms; /* of slots from UTC; fixed from the first job or slot's end on */
};

enum command_kind {
    COMMAND_CHANGE_SETTINGS,
    COMMAND_OPEN_ACCOUNT,
    COMMAND_SET_PASSWORD,
    COMMAND_FREEZE_ACCOUNT,
    COMMAND_UNFREEZE_ACCOUNT,
    COMMAND_GIVE_GRANT, /* the operator: the first credits of an account that waits for them */
    COMMAND_DELETE_ACCOUNT,
    COMMAND_SEE_ACCOUNT, /* it was used; at most one event a day */
    COMMAND_CREATE_GROUP,
    COMMAND_JOIN_GROUP,
    COMMAND_LEAVE_GROUP,
    COMMAND_ADD_TOKEN,
    COMMAND_REVOKE_TOKEN,
    COMMAND_ADD_CODE,
    COMMAND_USE_CODE, /* of kind page; an enrolment code is used by enrol_machine */
    COMMAND_ENROL_MACHINE,
    COMMAND_SET_OFFER, /* makes or changes one */
    COMMAND_PAUSE_OFFER,
    COMMAND_RENEW_OFFER, /* the shell expanded its schedule further */
    COMMAND_WITHDRAW_OFFER,
    COMMAND_REPORT_PROBE,
    COMMAND_REPORT_PAIR, /* two machines were tried with one another */
    COMMAND_MACHINE_CONNECTED,
    COMMAND_MACHINE_SILENT,
    COMMAND_MACHINE_YIELDS, /* its daemon says what its owner leaves of it */
    COMMAND_MACHINE_GONE,   /* said good-bye: offline, its leases are lost */
    COMMAND_SUBMIT_JOB,
    COMMAND_LEASE_RUNNING,
    COMMAND_TICK_LEASE,
    COMMAND_END_LEASE,
    COMMAND_CANCEL_JOB,
    COMMAND_EXTEND_JOB,
    COMMAND_RELEASE_LEASE,  /* the borrower needs a worker no more */
    COMMAND_RESIZE_JOB,     /* its lead wants another number of workers */
    COMMAND_RECLAIM_LEASES, /* the owner takes the machine back */
    COMMAND_TRANSFER,
    COMMAND_BILL_COST,   /* what an account pays outside, for a machine that it lends */
    COMMAND_TIME_PASSED, /* at core_next_wake_ms, or any time */
    COMMAND_KIND_COUNT,
};

const char *command_kind_name(enum command_kind kind);

struct command {
    enum command_kind kind;
    union {
        struct core_settings change_settings;
        struct {
            struct text name;
            uint64_t address_block; /* with ACCOUNT_BLOCK_BIT; 0: not known */
            bool has_invite;
            uint8_t invite_hash[MARKET_HASH_SIZE];
        } open_account; /* subject: the account */
        struct {
            uint64_t account;
            struct text password; /* argon2id's string */
            uint64_t token;       /* the session that stays when the others end; 0: none */
        } set_password;
        struct {
            uint64_t account;
            struct text reason;
        } freeze_account;
        struct {
            uint64_t account;
        } unfreeze_account;
        struct {
            uint64_t account;
        } give_grant; /* subject: the account */
        struct {
            uint64_t account;
        } delete_account;
        struct {
            uint64_t account;
        } see_account;
        struct {
            uint64_t account;
            struct text name;
        } create_group; /* subject: the group */
        struct {
            uint64_t account;
            uint8_t code_hash[MARKET_HASH_SIZE];
        } join_group; /* subject: the group */
        struct {
            uint64_t account;
            uint64_t member; /* whom its owner takes out; 0: the account itself leaves */
        } leave_group;       /* subject: the group */
        struct {
            uint64_t account;
            uint8_t hash[MARKET_HASH_SIZE];
            uint64_t scopes;
            int64_t expires_ms; /* 0: never */
            struct text label;
            bool is_session;
        } add_token; /* subject: the token */
        struct {
            uint64_t account; /* whose it must be */
            uint64_t token;
        } revoke_token;
        struct {
            enum code_kind kind;
            uint64_t account;
            uint8_t hash[MARKET_HASH_SIZE];
            int64_t expires_ms;
        } add_code; /* subject: the code */
        struct {
            enum code_kind kind;
            uint8_t hash[MARKET_HASH_SIZE];
        } use_code; /* subject: the account the code was made for */
        struct {
            uint8_t code_hash[MARKET_HASH_SIZE];
            uint8_t public_key[MACHINE_KEY_SIZE];
            struct text name; /* empty: the name it has, for a key that is known */
            struct probe probe;
            struct offer_terms offer; /* of the machine's first offer */
        } enrol_machine;              /* subject: the machine */
        struct {
            uint64_t account; /* the owner; the same below */
            uint64_t machine;
            uint64_t offer; /* 0: a new one */
            bool is_first;  /* instead: the machine's first, made when it has none */
            struct offer_terms terms;
        } set_offer; /* subject: the offer */
        struct {
            uint64_t account;
            uint64_t offer;
            int64_t until_ms; /* not after now: it is resumed; OFFER_PAUSED_FOREVER */
        } pause_offer;
        struct {
            uint64_t offer;
            struct json_array spans; /* of struct span: all of them, anew */
        } renew_offer;
        struct {
            uint64_t account;
            uint64_t offer;
        } withdraw_offer;
        struct {
            uint64_t machine;
            struct probe probe;
        } report_probe;
        struct {
            uint64_t low, high; /* machines */
            int64_t rtt_us;     /* on a direct path, at least 1 */
        } report_pair;
        struct {
            uint64_t machine;
            uint64_t generation; /* an older one is refused */
        } machine_connected;
        struct {
            uint64_t machine;
        } machine_silent;
        struct {
            uint64_t machine;
            enum machine_yield yield;
        } machine_yields;
        struct {
            uint64_t machine;
        } machine_gone;
        struct job_request submit_job; /* subject: the job, or the one the key made before */
        struct {
            uint64_t lease;
            uint64_t fence;
        } lease_running;
        struct {
            uint64_t lease;
            uint64_t fence;
            uint64_t tick_index; /* from 1; may leave some out, never goes back */
            int64_t wall_ms;     /* verified since the lease started, all ticks together */
        } tick_lease;
        struct {
            uint64_t lease;
            uint64_t fence;
            enum lease_outcome outcome;
            int64_t exit_code; /* of its process, 128 + n by signal n; 0: as it should, or none */
            struct text reason;
            uint64_t agreeing[2]; /* FAULTY: the leases that agree on another result than its own */
            uint64_t accuser;     /* and the parameter server that says so */
            uint64_t tick_index;  /* the last verified tick, billed before the end unless it was */
            int64_t wall_ms;      /* as of tick_lease; both 0: nothing was verified */
        } end_lease;
        struct {
            uint64_t account;
            uint64_t job;
        } cancel_job;
        struct {
            uint64_t account;
            uint64_t job;
            int64_t max_run_ms; /* in all, more than before; 0: by `more_ms` */
            int64_t more_ms;
        } extend_job;
        struct {
            uint64_t account;
            uint64_t lease; /* of a worker, not the job's last */
        } release_lease;
        struct {
            uint64_t lease; /* of the lead of a job that goes by a schedule */
            uint64_t fence;
            int64_t workers;
        } resize_job; /* subject: the job */
        struct {
            uint64_t account;
            uint64_t lease; /* one of these three */
            uint64_t offer; /* all leases under it */
            uint64_t machine;
        } reclaim_leases; /* subject: the machine */
        struct {
            uint64_t from;
            uint64_t to;
            int64_t amount_micro;
            struct text memo; /* empty: "transfer" */
        } transfer;           /* subject: the event that has the entry */
        struct {
            uint64_t account;
            uint64_t machine; /* 0: it never enrolled */
            int64_t usd_micro;
            int64_t amount_micro;
            struct text bill; /* the seller's name for it */
        } bill_cost;
    };
};
