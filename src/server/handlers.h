/* The functions behind the routes; the context of each is the struct server. */
#pragma once

#include "net/http_server.h"

/* handle_account.c */
http_handler handle_account_create;
http_handler handle_account_get;
http_handler handle_account_delete;
http_handler handle_password_put;

/* handle_session.c */
http_handler handle_page_code_create;
http_handler handle_session_create;
http_handler handle_session_delete;
http_handler handle_session_end;

/* handle_group.c */
http_handler handle_group_create;
http_handler handle_group_get;
http_handler handle_group_code_create;
http_handler handle_group_join;
http_handler handle_group_leave;
http_handler handle_group_remove;

/* handle_import.c */
http_handler handle_import_create;
http_handler handle_import_get;
http_handler handle_import_delete;
http_handler handle_import_look;

/* handle_operator.c */
http_handler handle_settings_get;
http_handler handle_settings_put;
http_handler handle_invite_create;
http_handler handle_account_list;
http_handler handle_account_freeze;
http_handler handle_account_unfreeze;
http_handler handle_account_grant;
http_handler handle_audit_get;
http_handler handle_audit_create;

/* handle_cloud.c */
http_handler handle_cloud_get;
http_handler handle_cloud_order;
http_handler handle_cloud_stop;
http_handler handle_cloud_stop_all;
http_handler handle_cloud_sweep;

/* handle_credit.c */
http_handler handle_entries;
http_handler handle_transfer_create;

/* handle_token.c */
http_handler handle_token_create;
http_handler handle_token_list;
http_handler handle_session_list;
http_handler handle_token_delete;

/* handle_enrol.c */
http_handler handle_machine_code_create;
http_handler handle_machine_code_check;
http_handler handle_machine_enrol;

/* handle_machine.c */
http_handler handle_machine_list;
http_handler handle_machine_get;
http_handler handle_machine_report; /* handle_report.c */
http_handler handle_machine_put_offer;

/* handle_machine_word.c */
http_handler handle_machine_pause;
http_handler handle_machine_resume;
http_handler handle_machine_reclaim;
http_handler handle_lease_end;

/* handle_earnings.c */
http_handler handle_machine_earnings;
http_handler handle_machine_estimate;

/* handle_lease.c */
http_handler handle_machine_leases;

/* handle_market.c */
http_handler handle_market_health;

/* handle_offer.c */
http_handler handle_machine_offers;
http_handler handle_offer_create;
http_handler handle_offer_list;
http_handler handle_offer_get;
http_handler handle_offer_put;
http_handler handle_offer_patch;
http_handler handle_offer_pause;
http_handler handle_offer_resume;
http_handler handle_offer_delete;

/* handle_price.c */
http_handler handle_prices;
http_handler handle_price_explain;

/* handle_catalogue.c */
http_handler handle_datasets;
http_handler handle_models;

/* handle_quote.c */
http_handler handle_quote_create;
http_handler handle_job_check;

/* handle_job.c */
http_handler handle_job_create;
http_handler handle_job_list;
http_handler handle_job_get;
http_handler handle_job_cancel;
http_handler handle_job_extend;
http_handler handle_lease_release;

/* handle_result.c */
http_handler handle_job_metrics;
http_handler handle_job_direct;
http_handler handle_source_create;
http_handler handle_job_artifacts;
http_handler handle_job_artifact;
http_handler handle_job_bill;
http_handler handle_job_explain;

/* handle_profile.c */
http_handler handle_job_profile;
http_handler handle_prediction_put;
http_handler handle_profiles_get;
http_handler handle_profiles_put;
http_handler handle_profiles_delete;

/* handle_recommend.c */
http_handler handle_recommendation_create;

/* handle_job_file.c */
http_handler handle_job_file;
http_handler handle_job_tensorboard;
http_handler handle_job_schema;

/* handle_log.c */
http_handler handle_job_logs;
http_handler handle_job_log_search;

/* handle_live.c */
http_handler handle_job_events;
http_handler handle_events;

/* handle_blob.c */
http_handler handle_chunk_put;
http_handler handle_chunk_post;
http_handler handle_chunk_get;
http_handler handle_chunks_missing;

/* handle_object.c */
http_handler handle_object_list;
http_handler handle_object_put;
http_handler handle_object_get;
http_handler handle_object_delete;

/* handle_object_token.c */
http_handler handle_object_token_create;
http_handler handle_object_token_delete;

/* handle_meta.c */
http_handler handle_server;
http_handler handle_healthz;
http_handler handle_readyz;
http_handler handle_metrics;
http_handler handle_page;
