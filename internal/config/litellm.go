package config

import "strings"

// The keys that LiteLLM has and we do not act on yet. They let a warning tell what is
// still to come from what was mistyped.

func words(lists ...string) keys {
	set := keys{}
	for _, list := range lists {
		for _, w := range strings.Fields(list) {
			set[w] = true
		}
	}
	return set
}

func litellmTop() keys {
	return words(`include callback_settings guardrails credential_list files_settings finetune_settings
		assistant_settings mcp_servers mcp_tools mcp_aliases search_tools vector_store_registry prompts policies
		policy_attachments agent_list cost_discount_config cost_margin_config`)
}

func litellmEntry() keys {
	return words(`guardrails tpm rpm`)
}

func litellmParams() keys {
	return words(requestParams, prices, `api_version order ttft_timeout stream_idle_timeout keepalive_seconds
		max_parallel_requests tags max_budget budget_duration drop_params additional_drop_params
		use_in_pass_through litellm_credential_name use_litellm_proxy region_name vertex_project vertex_location
		vertex_credentials aws_access_key_id aws_secret_access_key aws_session_token aws_region_name
		aws_session_name aws_profile_name aws_role_name aws_bedrock_runtime_endpoint azure_ad_token tenant_id
		client_id client_secret azure_username azure_password watsonx_region_name headers default_headers
		default_api_key_rpm_limit default_api_key_tpm_limit cooldown_time merge_reasoning_content_in_choices
		cache_control_injection_points model_info hf_model_name no-log litellm_trace_id mock_timeout
		input_cost_per_second output_cost_per_second input_cost_per_character output_cost_per_character
		input_cost_per_image output_cost_per_image input_cost_per_query input_cost_per_pixel output_cost_per_pixel
		input_cost_per_audio_token output_cost_per_audio_token input_cost_per_token_batches
		output_cost_per_token_batches cache_creation_input_token_cost_above_1hr tiered_pricing`)
}

// prices are the usual fields of a price. Those that stand in a file have a handler
// each; here they let a mistyped one be recognized.
const prices = "input_cost_per_token output_cost_per_token cache_read_input_token_cost cache_creation_input_token_cost"

// requestParams are request fields that LiteLLM sends with each request of a model.
const requestParams = `temperature top_p top_k n max_tokens max_completion_tokens presence_penalty frequency_penalty
		stop seed logit_bias logprobs top_logprobs response_format tools tool_choice parallel_tool_calls user
		reasoning_effort thinking extra_body extra_query modalities audio service_tier stream_options
		dimensions encoding_format safety_settings web_search_options`

func litellmRouter() keys {
	return words(`routing_strategy routing_strategy_args allowed_fails cooldown_time disable_cooldowns fallbacks
		context_window_fallbacks content_policy_fallbacks default_fallbacks max_fallbacks retry_policy
		model_group_retry_policy allowed_fails_policy retry_after enable_pre_call_checks optional_pre_call_checks
		enable_tag_filtering tag_filtering_match_any redis_host redis_port redis_password redis_url redis_db
		cache_responses cache_kwargs caching_groups client_ttl provider_budget_config default_max_parallel_requests
		default_litellm_params default_priority polling_interval set_verbose debug_level alerting_config
		router_general_settings ignore_invalid_deployments assistants_config search_tools`)
}

func litellmLitellm() keys {
	return words(`callbacks success_callback failure_callback service_callback audit_log_callbacks cache
		cache_params drop_params modify_params json_logs set_verbose fallbacks context_window_fallbacks
		content_policy_fallbacks default_fallbacks max_budget budget_duration default_team_params
		default_team_settings default_internal_user_params default_key_generate_params
		upperbound_key_generate_params turn_off_message_logging redact_user_api_key_info
		redact_messages_in_exceptions enable_redis_auth_cache sse_keepalive_ping_interval_seconds timezone
		max_end_user_budget max_end_user_budget_id internal_user_budget_duration max_internal_user_budget
		allowed_fails cooldown_time ssl_verify ssl_certificate ssl_security_level force_ipv4
		telemetry langfuse_default_tags s3_callback_params gcs_pub_sub_use_v1 datadog_params
		add_function_to_prompt enable_json_schema_validation enable_preview_features public_model_groups
		public_model_groups_links key_generation_settings default_redis_batch_cache_expiry
		cost_discount_config cost_margin_config forward_traceparent_to_llm_provider disable_hf_tokenizer_download
		disable_copilot_system_to_assistant enable_end_user_cost_tracking_prometheus_only
		disable_end_user_cost_tracking disable_end_user_cost_tracking_prometheus_only
		require_auth_for_metrics_endpoint prometheus_initialize_budget_metrics prometheus_metrics_config
		custom_prometheus_metadata_labels custom_prometheus_tags prometheus_latency_buckets
		prometheus_emit_stream_label store_audit_logs always_include_stream_usage model_alias_map
		tag_budget_config return_response_headers include_cost_in_streaming_usage use_chat_completions_url_for_anthropic_messages
		guardrails input_callback num_retries_per_request user_url_validation default_in_memory_ttl`)
}

func litellmGeneral() keys {
	return words(`completion_model database_connection_pool_limit database_connection_timeout
		database_connection_pool_timeout database_disable_prepared_statements database_statement_timeout
		database_lock_timeout database_type database_args proxy_batch_write_at proxy_batch_polling_interval
		proxy_budget_rescheduler_min_time proxy_budget_rescheduler_max_time use_redis_transaction_buffer
		use_shared_health_check store_model_in_db store_prompts_in_spend_logs disable_spend_logs disable_error_logs
		disable_spend_updates disable_adding_master_key_hash_to_db disable_reset_budget disable_responses_id_security
		allow_requests_on_db_unavailable fail_closed_budget_enforcement disable_budget_reservation
		max_parallel_requests global_max_parallel_requests alerting alerting_threshold alerting_args alert_types
		alert_to_webhook_url background_health_checks health_check_interval health_check_details
		health_check_concurrency custom_auth custom_auth_run_common_checks custom_key_generate custom_key_update
		custom_sso enforce_user_param enforced_params user_header_name user_header_mappings litellm_key_header_name
		user_api_key_cache_ttl user_api_key_cache_max_size always_include_stream_usage cancel_on_disconnect
		forward_client_headers_to_llm_api forward_openai_org_id forward_llm_provider_auth_headers
		coordination_redis max_response_size_mb enable_drain_endpoint
		drain_endpoint_token pass_through_endpoints allowed_routes admin_only_routes admin_allowed_routes public_routes
		enable_jwt_auth litellm_jwtauth use_google_kms use_aws_kms use_azure_key_vault google_kms_resource_name
		key_management_system key_management_settings infer_model_from_keys ui_access_mode default_team_disabled
		pass_through_request_timeout
		reject_clientside_metadata_tags role_permissions maximum_spend_logs_retention_period
		maximum_spend_logs_retention_interval maximum_spend_logs_cleanup_cron allow_user_auth allow_client_side_credentials
		supported_db_objects token_rate_limit_type use_x_forwarded_for use_client_credentials_pass_through_routes
		allowed_ips proxy_admin_email image_generation_model otel service_account_settings
		enable_public_model_hub auto_redirect_ui_login_to_sso
		require_end_user_mcp_access_defined mcp_internal_ip_ranges mcp_client_side_auth_header_name
		mcp_required_fields disable_prisma_schema_update disable_master_key_return moderation_model`)
}

// litellmInfo are model_info keys that LiteLLM acts on and we do not; other keys there
// are the operator's own and only shown.
func litellmInfo() keys { return words(prices, `access_groups custom_tokenizer tiered_pricing`) }
