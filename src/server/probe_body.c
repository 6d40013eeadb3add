#include "server/probe_body.h"

static const struct json_field probe_fields[] = {
    {"cores_milli", JSON_I64, offsetof(struct probe, resources.cores_milli), .is_required = true,
     .minimum = 0, .maximum = RESOURCES_CORES_MILLI_MAX},
    {"ram_bytes", JSON_I64, offsetof(struct probe, resources.ram_bytes), .is_required = true,
     .minimum = 0, .maximum = RESOURCES_BYTES_MAX},
    {"disk_bytes", JSON_I64, offsetof(struct probe, resources.disk_bytes), .is_required = true,
     .minimum = 0, .maximum = RESOURCES_BYTES_MAX},
    {"gpus_milli", JSON_I64, offsetof(struct probe, resources.gpus_milli), .minimum = 0,
     .maximum = RESOURCES_GPUS_MILLI_MAX},
    {"speed_weight_milli", JSON_I64, offsetof(struct probe, speed_weight_milli),
     .is_required = true, .minimum = PRICE_SPEED_MILLI_MIN, .maximum = PRICE_SPEED_MILLI_MAX},
    {"cpu_model", JSON_CHARS, offsetof(struct probe, cpu_model),
     .size_max = MACHINE_CPU_MODEL_SIZE},
    {"labels", JSON_CHARS, offsetof(struct probe, labels), .size_max = MACHINE_LABELS_SIZE},
    {"gpu_model", JSON_CHARS, offsetof(struct probe, gpu_model),
     .size_max = MACHINE_GPU_MODEL_SIZE},
    {"gpu_ram_bytes", JSON_I64, offsetof(struct probe, gpu_ram_bytes), .minimum = 0,
     .maximum = RESOURCES_BYTES_MAX},
    {"bandwidth_kbit", JSON_I64, offsetof(struct probe, resources.bandwidth_kbit), .minimum = 0,
     .maximum = RESOURCES_KBIT_MAX},
    {"ram_bytes_per_s", JSON_I64, offsetof(struct probe, ram_bytes_per_s), .minimum = 0,
     .maximum = MACHINE_RAM_BYTES_PER_S_MAX},
    {"forbids_job_network", JSON_BOOL, offsetof(struct probe, forbids_job_network)},
    {"allows_open_network", JSON_BOOL, offsetof(struct probe, allows_open_network)},
    {"allows_images", JSON_BOOL, offsetof(struct probe, allows_images)},
};
const struct json_schema probe_body_schema = JSON_SCHEMA("probe", probe_fields, struct probe);
