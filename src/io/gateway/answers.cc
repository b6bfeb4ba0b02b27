// SPDX-License-Identifier: Apache-2.0
// Sentences that help.
#include "io/gateway/answers.h"

#include "io/json/escape.h"

namespace signalbox::gateway {

OwnAnswer own_answer(model::Outcome outcome) {
  using model::Outcome;
  const int status = model::http_status(outcome);
  switch (outcome) {
    case Outcome::EngineUnreachable:
      return {status, "engine_unreachable",
              "No engine of this model could be reached or gave a usable answer. Try again."};
    case Outcome::EngineTimeout:
      return {status, "engine_timeout", "The engine did not answer in time."};
    case Outcome::Truncated:
      return {status, "truncated",
              "The engine broke off inside its answer; what came so far is incomplete."};
    case Outcome::QueueFull:
      return {status, "queue_full",
              "All engines of this model are busy and the queue is full. Retry-After says when."};
    case Outcome::QueueTimeout:
      return {status, "queue_timeout", "No engine of this model became free in time."};
    case Outcome::NoEndpoint:
      return {status, "no_endpoint",
              "No engine of this model exists or may serve this request at present."};
    case Outcome::TenantLimit:
      return {status, "rate_limit_exceeded",
              "Your requests in flight have reached the limit of your key."};
    case Outcome::Draining:
      return {status, "draining", "This gateway is shutting down. Try again."};
    case Outcome::GatewayLimit:
      return {status, "gateway_limit",
              "This gateway has no connection left for your request. Try again."};
    default: return {status, "engine_error", "The engine failed to answer."};
  }
}

std::string unknown_model(std::string_view asked, const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 12;
  std::string text = "The model '" + std::string(asked.substr(0, 200)) + "' does not exist.";
  if (names.empty()) return text + " No model is available.";
  text += " Available: ";
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) {
    if (i > 0) text += ", ";
    text += names[i];
  }
  if (names.size() > kShown) text += ", and more in /v1/models";
  return text + ".";
}

std::string error_event(model::Api api, const OwnAnswer& answer) {
  const std::string_view message = answer.message;
  if (api == model::Api::Messages) {
    return "event: error\ndata: " + json::anthropic_error(message, "api_error") + "\n\n";
  }
  if (api == model::Api::Responses) {
    return "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":" +
           json::quote(message) + ",\"param\":null}\n\n";
  }
  return "data: " + json::openai_error(message, "server_error", {}, answer.code) + "\n\n";
}

bool answers_itself(std::string_view path) {
  return path == "/health" || path == "/v1/models" || path.starts_with("/v1/models/");
}

}  // namespace signalbox::gateway
