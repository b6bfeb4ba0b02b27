// SPDX-License-Identifier: Apache-2.0
// What the engine tells about itself, and the emulator's own endpoints under /emulator/.
#include <algorithm>
#include <charconv>

#include "emulator/emulator.h"
#include "io/net/clock.h"

namespace signalbox::emulator {
namespace {

constexpr std::string_view kJson = "application/json";

// The value of one key of a query; empty when it is absent.
std::string_view parameter(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=')
      return pair.substr(key.size() + 1);
  }
  return {};
}

std::size_t number(std::string_view text, std::size_t otherwise) {
  std::size_t value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Builds one flat JSON object.
class Object {
 public:
  Object& put(std::string_view key, std::string_view text) { return raw(key, json_string(text)); }
  Object& put(std::string_view key, std::int64_t value) { return raw(key, std::to_string(value)); }
  Object& put(std::string_view key, double value) { return raw(key, json_number(value)); }
  Object& flag(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  Object& raw(std::string_view key, std::string_view json) {
    out_ += out_.empty() ? '{' : ',';
    out_ += json_string(key);
    out_ += ':';
    out_ += json;
    return *this;
  }
  std::string text() { return (out_.empty() ? "{" : out_) + "}"; }

 private:
  std::string out_;
};

std::optional<Api> api_named(std::string_view path) {
  if (path.ends_with("/chat/completions")) return Api::Chat;
  if (path.ends_with("/completions")) return Api::Completions;
  if (path.ends_with("/messages")) return Api::Messages;
  if (path.ends_with("/responses")) return Api::Responses;
  return std::nullopt;
}

}  // namespace

std::string Engine::models_json() const {
  const std::string name = json_string(model_name_);
  const std::string created = std::to_string(started_unix_ns_ / 1'000'000'000);
  const std::string context = std::to_string(context_tokens_);
  if (options_.dialect == Dialect::Vllm)
    return "{\"object\":\"list\",\"data\":[{\"id\":" + name + ",\"object\":\"model\",\"created\":" +
           created + ",\"owned_by\":\"vllm\",\"root\":" + name +
           ",\"parent\":null,\"max_model_len\":" + context + ",\"permission\":[]}]}";
  return "{\"models\":[{\"name\":" + name + ",\"model\":" + name +
         ",\"modified_at\":\"\",\"size\":\"\",\"digest\":\"\",\"type\":\"model\",\"description\":"
         "\"\",\"tags\":[\"\"],\"capabilities\":[\"completion\"],\"parameters\":\"\"}],"
         "\"object\":\"list\",\"data\":[{\"id\":" + name + ",\"aliases\":[" + name +
         "],\"tags\":[],\"object\":\"model\",\"created\":" + created +
         ",\"owned_by\":\"llamacpp\",\"meta\":{\"vocab_type\":2,\"n_vocab\":49152,\"n_ctx\":" +
         context + ",\"n_ctx_train\":" + context +
         ",\"n_embd\":576,\"n_params\":134515008,\"size\":96576768,\"ftype\":\"Q4_1\"}}]}";
}

std::string Engine::props_json() const {
  const std::string context = std::to_string(context_tokens_);
  return "{\"default_generation_settings\":{\"params\":{\"seed\":4294967295,\"temperature\":0.8,"
         "\"top_k\":40,\"max_tokens\":-1,\"n_predict\":-1,\"stream\":false},\"n_ctx\":" + context +
         "},\"total_slots\":" + std::to_string(options_.slots) + ",\"model_alias\":" +
         json_string(model_name_) + ",\"model_path\":" + json_string(model_name_ + ".gguf") +
         ",\"modalities\":{\"vision\":false,\"video\":false,\"audio\":false},"
         "\"endpoint_slots\":true,\"endpoint_props\":false,\"endpoint_metrics\":true,"
         "\"chat_template\":\"chatml\",\"bos_token\":\"<|im_start|>\",\"eos_token\":\"<|im_end|>\","
         "\"build_info\":\"b0-emulated\",\"is_sleeping\":false}";
}

std::string Engine::slots_json() const {
  std::string out = "[";
  const std::int64_t running = truth_.gauges().running;
  for (int i = 0; i < options_.slots; ++i) {
    if (i > 0) out += ',';
    out += "{\"id\":" + std::to_string(i) + ",\"n_ctx\":" + std::to_string(context_tokens_) +
           ",\"speculative\":false,\"is_processing\":" + (i < running ? "true" : "false") + "}";
  }
  return out + "]";
}

std::string Engine::metrics_text() const {
  MetricsView view;
  view.model = model_name_;
  view.started_unix = static_cast<double>(started_unix_ns_) * 1e-9;
  view.block_tokens = truth_.block_tokens();
  for (int rank = 0; rank < truth_.ranks(); ++rank) {
    view.ranks.push_back({truth_.gauges(rank), truth_.counters(rank),
                          &metrics_[static_cast<std::size_t>(rank)]});
  }
  return options_.dialect == Dialect::Vllm ? vllm_metrics(view) : llamacpp_metrics(view);
}

void Engine::serve_admin(Connection& c, const RequestInfo& info, std::string_view body) {
  const std::string_view chosen = parameter(info.query, "engine");
  const std::size_t index = number(chosen, static_cast<std::size_t>(index_));
  if (index >= emulator_.size())
    return c.reply(404, kJson, "{\"error\":\"there is no such engine\"}");
  Engine& engine = emulator_.engine(index);
  if (info.path == "/emulator/stats") return c.reply(200, kJson, engine.stats_json());
  if (info.path == "/emulator/records")
    return c.reply(200, kJson,
                   engine.records_json(number(parameter(info.query, "limit"), 1000)));
  if (info.path == "/emulator/expect") {
    int status = 200;
    const auto api = api_named(parameter(info.query, "path"));
    const std::string answer = engine.expect_json(api, body, status);
    return c.reply(status, kJson, answer);
  }
  if (info.path == "/emulator/fault") {
    const auto command = read_fault(body.empty() ? "{}" : body);
    if (!command)
      return c.reply(400, kJson,
                     refusal_body(Dialect::Vllm, Api::Chat, command.error(), context_tokens_));
    c.reply(200, kJson, "{\"ok\":true}");
    return engine.apply(*command, &c);
  }
  c.reply(404, kJson,
          "{\"error\":\"there is /emulator/stats, /emulator/records, /emulator/expect and "
          "/emulator/fault\"}");
}

std::string Engine::stats_json() const {
  const truth::Gauges g = truth_.gauges();
  const truth::Counters k = truth_.counters();
  const truth::Distortion& d = truth_.distortion();
  Object hidden;
  hidden.put("fixed", d.fixed).put("prefill", d.prefill).put("decode", d.decode);
  Object out;
  out.put("engine", std::int64_t{index_}).put("model", model_name_);
  out.put("incarnation", static_cast<std::int64_t>(truth_.incarnation()));
  out.put("http_requests", stats_.http_requests).put("requests", stats_.requests);
  out.put("active", static_cast<std::int64_t>(slots_.size() - free_slots_.size()));
  out.put("finished", stats_.finished).put("aborted", stats_.aborted);
  out.put("faulted", stats_.faulted).put("refused", stats_.refused);
  out.put("spoilt", stats_.spoilt).put("ended_prompt_tokens", stats_.prompt_tokens);
  out.put("ended_cached_tokens", stats_.cached_tokens);
  out.put("ended_generated_tokens", stats_.generated_tokens);
  out.put("connections", static_cast<std::int64_t>(connections_.size()));
  out.put("connections_ever", stats_.connections).put("events", stats_.events);
  out.put("records", static_cast<std::int64_t>(records_.size()));
  out.put("running", g.running).put("waiting", g.waiting);
  out.put("kv_blocks", g.kv_blocks).put("kv_blocks_used", g.kv_blocks_used);
  out.put("tokens", k.generated_tokens).put("prompt_tokens", k.prompt_tokens);
  out.put("cached_tokens", k.cached_tokens).put("computed_tokens", k.computed_tokens);
  out.put("preemptions", k.preemptions).put("steps", k.steps);
  out.put("busy_seconds", k.busy_seconds / options_.speed);
  out.flag("refusing", !acceptor_).raw("hidden", hidden.text());
  return out.text();
}

std::string Engine::records_json(std::size_t limit) const {
  std::string out = "{\"records\":[";
  const std::size_t first = records_.size() > limit ? records_.size() - limit : 0;
  for (std::size_t i = first; i < records_.size(); ++i) {
    const Record& r = records_[i];
    Object one;
    one.put("id", r.id).put("request_id", r.request_id).put("outcome", r.outcome);
    one.flag("stream", r.stream).put("prompt_tokens", r.prompt_tokens);
    one.put("cached_tokens", r.cached_tokens).put("generated_tokens", r.generated_tokens);
    one.put("queue_ms", r.queue_ms).put("ttft_ms", r.ttft_ms).put("total_ms", r.total_ms);
    if (i > first) out += ',';
    out += one.text();
  }
  return out + "]}";
}

std::string Engine::expect_json(std::optional<Api> api, std::string_view body,
                                int& status) const {
  const auto request = read_expect(api, options_.dialect, body);
  if (!request) {
    status = request.error().status;
    return refusal_body(Dialect::Vllm, Api::Chat, request.error(), context_tokens_);
  }
  std::string choices;
  std::string first;
  for (const std::string& prompt : request->prompts) {
    const std::int64_t tokens = std::max<std::int64_t>(1, token_count(prompt));
    for (int copy = 0; copy < request->n; ++copy) {
      TextState state;
      state.append(prompt);
      const Answer answer = generate(state, rule(*request, tokens, copy));
      Object one;
      one.put("text", answer.text).put("tokens", answer.tokens).put("prompt_tokens", tokens);
      one.put("finish_reason", answer.finish == Finish::Stop ? "stop" : "length");
      const std::string text = one.text();
      if (first.empty()) first = text.substr(0, text.size() - 1);
      choices += (choices.empty() ? "" : ",") + text;
    }
  }
  return first + ",\"rendered\":" + json_string(request->prompts.front()) + ",\"choices\":[" +
         choices + "]}";
}

}  // namespace signalbox::emulator
