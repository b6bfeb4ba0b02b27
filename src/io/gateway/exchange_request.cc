// SPDX-License-Identifier: Apache-2.0
// What a request is: path, tenant, body, public model name; then the core has it.
#include <algorithm>
#include <utility>

#include "core/cache/chain.h"
#include "io/gateway/answers.h"
#include "io/gateway/cors.h"
#include "io/gateway/exchange.h"
#include "io/gateway/identify.h"
#include "io/gateway/models_page.h"
#include "io/gateway/session.h"
#include "io/gateway/worker.h"

namespace signalbox::gateway {
namespace {

using http::FieldName;
using http::Method;

bool identity_encoding(const http::RequestHead& head) {
  const auto coding = head.fields.find(FieldName::ContentEncoding);
  return !coding || coding->empty() || *coding == "identity";
}

}  // namespace

// Nothing of the connection's last request is left.
void Exchange::reset(bool keep_alive) {
  published_ = worker_.published_ptr();
  head_ = nullptr;
  body_ = {};
  keep_alive_ = keep_alive;
  http10_ = head_only_ = head_sent_ = end_sent_ = client_left_ = false;
  attempt_ = {};
  decision_ = 0;
  tenant_ = nullptr;
  api_ = model::Api::ChatCompletions;
  record_ = {};
  record_.begun = worker_.loop().now();
  record_.client = session_.peer_ip();
  record_.bytes_out = session_.bytes_out();
}

void Exchange::note_client(const http::RequestHead& head) {
  record_.client =
      client_address(head, session_.peer_ip(), published_->config.gateway.trusted_peers);
}

void Exchange::meet(const http::RequestHead& head) {
  head_ = &head;
  http10_ = head.minor_version == 0;
  head_only_ = head.method == Method::Head;
  record_.bytes_in = head.target().size();
  record_.request_id = choose_request_id(head);
  record_.method = head.method_text();
  record_.path = head.path();
  note_client(head);
}

// Answers what the head alone is enough to refuse; then false.
bool Exchange::admit(const http::RequestHead& head) {
  if (!find_api(head.path())) {
    send_local_error(404, "Unknown path; see /v1/models and /v1/chat/completions.", "unknown_url");
    return false;
  }
  if (head.method != Method::Post) {
    send_local_error(405, "This path takes POST.", "method_not_allowed");
    return false;
  }
  if (!identity_encoding(head)) {
    send_local_error(415, "Send the body without Content-Encoding.", "unsupported_encoding");
    return false;
  }
  return authenticate(head);
}

bool Exchange::turn_away(const http::RequestHead& head, Instant begun) {
  if (head.method == Method::Options || answers_itself(head.path())) return false;
  reset(false);
  meet(head);
  record_.begun = begun;
  return !admit(head);
}

void Exchange::begin(const http::RequestHead& head, std::string_view body, bool keep_alive) {
  reset(keep_alive);
  meet(head);
  body_ = body;
  record_.bytes_in += body.size();

  if (serve_local(head)) return;
  if (!admit(head)) return;
  if (const auto scanned = json::scan(body, api_, published_->scan_limits, scan_); !scanned) {
    const std::string_view param =
        scan_.fault == json::Key::None ? std::string_view{} : json::name(scan_.fault);
    return send_local_error(400, scanned.error().message, {}, Duration(-1), param);
  }
  record_.model = scan_.model;
  record_.stream = scan_.stream;
  if (!resolve_name()) return;
  hand_to_core(body);
}

std::string Exchange::choose_request_id(const http::RequestHead& head) const {
  const auto given = head.fields.find(FieldName::XRequestId);
  const auto harmless = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c == '-' || c == '_' || c == '.' || c == ':';
  };
  // Nobody takes a name that another request has or will get.
  if (given && !given->empty() && given->size() <= 128 && !worker_.gives_name(*given) &&
      std::all_of(given->begin(), given->end(), harmless)) {
    return std::string(*given);
  }
  return {};
}

bool Exchange::serve_local(const http::RequestHead& head) {
  const std::string_view path = head.path();
  if (head.method == Method::Options) {
    if (record_.request_id.empty()) record_.request_id = worker_.request_name({});
    out_.clear();
    record_.status = 204;
    append_preflight(out_, *published_, head, record_.request_id);
    session_.send(out_);
    finish(model::Outcome::Completed, true);
    return true;
  }
  if (!answers_itself(path)) return false;
  if (head.method != Method::Get && head.method != Method::Head) {
    send_local_error(405, "This path takes GET.", "method_not_allowed");
    return true;
  }
  if (path == "/health") {
    send_local(200, R"({"status":"ok"})", Duration(-1));
    return true;
  }
  if (!authenticate(head)) return true;
  constexpr std::string_view kModels = "/v1/models";
  const model::TenantId tenant = tenant_ != nullptr ? tenant_->id : model::TenantId{};
  if (path == kModels || path == "/v1/models/") {
    send_local(200, models_page(*published_, tenant), Duration(-1));
    return true;
  }
  const auto name = http::percent_decode(path.substr(kModels.size() + 1));
  const auto entry = name ? published_->names.find(*name) : published_->names.end();
  if (entry == published_->names.end() || !allowed(entry->second.tenants, tenant)) {
    const std::string asked = name.value_or(std::string(path));
    send_local_error(404, unknown_model(asked, published_->names_for(tenant)), "model_not_found");
    return true;
  }
  send_local(200, model_entry(entry->first, entry->second), Duration(-1));
  return true;
}

bool Exchange::find_api(std::string_view path) {
  using model::Api;
  static constexpr std::pair<std::string_view, Api> kPaths[] = {
      {"/v1/chat/completions", Api::ChatCompletions},
      {"/v1/completions", Api::Completions},
      {"/v1/embeddings", Api::Embeddings},
      {"/v1/messages", Api::Messages},
      {"/v1/messages/count_tokens", Api::CountTokens},
      {"/v1/responses", Api::Responses},
  };
  for (const auto& [known, api] : kPaths) {
    if (path != known) continue;
    api_ = record_.api = api;
    return true;
  }
  return false;
}

bool Exchange::authenticate(const http::RequestHead& head) {
  if (published_->tenants.empty()) return true;
  const auto [key, differing] = presented_key(head);
  if (differing) {
    send_local_error(401, "Two different API keys came with this request. Send one.",
                     "conflicting_api_keys");
    return false;
  }
  if (key.empty()) {
    send_local_error(401, "Send your API key as 'Authorization: Bearer KEY' or 'x-api-key: KEY'.",
                     "missing_api_key");
    return false;
  }
  const auto found = published_->tenants.find(hash_key(key));
  if (found == published_->tenants.end()) {
    send_local_error(401, "This API key is not known here.", "invalid_api_key");
    return false;
  }
  tenant_ = &found->second;
  record_.tenant = tenant_->name;
  return true;
}

bool Exchange::resolve_name() {
  const model::TenantId tenant = tenant_ != nullptr ? tenant_->id : model::TenantId{};
  const auto found = published_->names.find(scan_.model);
  // A model that a tenant may not ask for does not exist for it.
  if (found == published_->names.end() || !allowed(found->second.tenants, tenant)) {
    if (published_->names.empty()) {
      send_local_error(503, "No model is known yet: no engine has answered so far.", "no_endpoint",
                       std::chrono::seconds(1));
      return false;
    }
    const auto names = published_->names_for(tenant);
    send_local_error(404, unknown_model(scan_.model, names), "model_not_found");
    return false;
  }
  name_ = &found->second;
  if (body_.size() > name_->body_max) {
    send_local_error(413, "The request body is larger than this model's limit of " +
                              std::to_string(name_->body_max) + " bytes.", "body_too_large");
    return false;
  }
  return true;
}

void Exchange::hand_to_core(std::string_view body) {
  id_ = worker_.register_exchange(*this);
  if (record_.request_id.empty()) {
    record_.request_id = worker_.request_name(id_);
  } else {
    worker_.remember_name(record_.request_id, id_);
    record_.engine_request_id = worker_.request_name(id_);
  }
  record_.core_knew = true;
  waits_since_ = worker_.loop().now();

  model::RequestArrived arrived;
  arrived.request = id_;
  arrived.owner = worker_.index();
  arrived.tenant = tenant_ != nullptr ? tenant_->id : model::TenantId{};
  arrived.route = name_->route;
  arrived.api = api_;
  arrived.stream = scan_.stream;
  arrived.lora = name_->lora;
  arrived.body_bytes = static_cast<std::int64_t>(body.size());
  arrived.output_max = scan_.output_max;
  arrived.choices = std::max(1, scan_.n);
  arrived.prompt.bytes = scan_.prompt_bytes;
  arrived.prompt.script = scan_.script;
  cache::Seed seed;
  seed.domain = tenant_ != nullptr ? tenant_->domain : salt_domain(body, scan_);
  seed.lora = name_->lora;
  cache::chain(seed, scan_.tool_blocks, scan_.message_blocks, arrived.prompt.chain);
  phase_ = Phase::Core;
  worker_.emit(std::move(arrived));
}

void Exchange::refuse_unread(int status, std::string_view reason, const http::RequestHead& head,
                             Read read, Instant begun) {
  note_unread(head, read, begun);
  if (status == 503) return send_local_error(503, reason, "gateway_limit", std::chrono::seconds(1));
  if (status != 413) return send_local_error(status, reason);
  const std::string limit = std::to_string(published_->body_max);
  send_local_error(413, "The request body is larger than this gateway's limit of " + limit +
                            " bytes, the largest of Gateway.limits.body and the Routes' body.",
                   "body_too_large");
}

// What there is to tell of a request that was not read whole.
void Exchange::note_unread(const http::RequestHead& head, Read read, Instant begun) {
  reset(false);
  // Of half a head the last of X-Forwarded-For may be missing, and the rest proves nothing.
  if (read == Read::Head) {
    note_client(head);
    head_ = &head;
  }
  record_.begun = begun;
  record_.method = head.method_text();
  // Of a head that is not whole, the request line may be known.
  const std::string_view target = head.target();
  if (target.starts_with('/')) record_.path = target.substr(0, target.find('?'));
  find_api(record_.path);
}

}  // namespace signalbox::gateway
