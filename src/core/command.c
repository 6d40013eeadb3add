#include "core/command.h"

#include "base/assert.h"

static const char *const kind_names[COMMAND_KIND_COUNT] = {
    [COMMAND_CHANGE_SETTINGS] = "change_settings",
    [COMMAND_OPEN_ACCOUNT] = "open_account",
    [COMMAND_SET_PASSWORD] = "set_password",
    [COMMAND_FREEZE_ACCOUNT] = "freeze_account",
    [COMMAND_UNFREEZE_ACCOUNT] = "unfreeze_account",
    [COMMAND_GIVE_GRANT] = "give_grant",
    [COMMAND_DELETE_ACCOUNT] = "delete_account",
    [COMMAND_SEE_ACCOUNT] = "see_account",
    [COMMAND_CREATE_GROUP] = "create_group",
    [COMMAND_JOIN_GROUP] = "join_group",
    [COMMAND_LEAVE_GROUP] = "leave_group",
    [COMMAND_ADD_TOKEN] = "add_token",
    [COMMAND_REVOKE_TOKEN] = "revoke_token",
    [COMMAND_ADD_CODE] = "add_code",
    [COMMAND_USE_CODE] = "use_code",
    [COMMAND_ENROL_MACHINE] = "enrol_machine",
    [COMMAND_SET_OFFER] = "set_offer",
    [COMMAND_PAUSE_OFFER] = "pause_offer",
    [COMMAND_RENEW_OFFER] = "renew_offer",
    [COMMAND_WITHDRAW_OFFER] = "withdraw_offer",
    [COMMAND_REPORT_PROBE] = "report_probe",
    [COMMAND_REPORT_PAIR] = "report_pair",
    [COMMAND_MACHINE_CONNECTED] = "machine_connected",
    [COMMAND_MACHINE_SILENT] = "machine_silent",
    [COMMAND_MACHINE_YIELDS] = "machine_yields",
    [COMMAND_MACHINE_GONE] = "machine_gone",
    [COMMAND_SUBMIT_JOB] = "submit_job",
    [COMMAND_LEASE_RUNNING] = "lease_running",
    [COMMAND_TICK_LEASE] = "tick_lease",
    [COMMAND_END_LEASE] = "end_lease",
    [COMMAND_CANCEL_JOB] = "cancel_job",
    [COMMAND_EXTEND_JOB] = "extend_job",
    [COMMAND_RELEASE_LEASE] = "release_lease",
    [COMMAND_RESIZE_JOB] = "resize_job",
    [COMMAND_RECLAIM_LEASES] = "reclaim_leases",
    [COMMAND_TRANSFER] = "transfer",
    [COMMAND_BILL_COST] = "bill_cost",
    [COMMAND_TIME_PASSED] = "time_passed",
};

const char *command_kind_name(enum command_kind kind)
{
    ASSERT(kind < COMMAND_KIND_COUNT);
    return kind_names[kind];
}
