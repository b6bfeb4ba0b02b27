// SPDX-License-Identifier: Apache-2.0
// Which request is answered how: generation, and the engines' own endpoints.
#include <algorithm>
#include <charconv>

#include "emulator/engine.h"
#include "io/net/clock.h"

namespace signalbox::emulator {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kJsonUtf8 = "application/json; charset=utf-8";
constexpr std::string_view kText = "text/plain; version=0.0.4; charset=utf-8";

std::optional<Api> api_of(std::string_view path) {
  if (path == "/v1/chat/completions") return Api::Chat;
  if (path == "/v1/completions") return Api::Completions;
  if (path == "/v1/messages") return Api::Messages;
  if (path == "/v1/responses") return Api::Responses;
  return std::nullopt;
}

Refusal fault_refusal(Dialect dialect, int status) {
  Refusal refusal{status, {}, "The engine was told to fail.", {}, -1};
  const bool vllm = dialect == Dialect::Vllm;
  if (status == 503) {
    refusal.type = vllm ? "Service Unavailable" : "unavailable_error";
    refusal.message = vllm ? "The engine is currently busy and cannot accept new requests. Please "
                             "try again later or on a different instance."
                           : "Loading model";
  } else if (status == 429) {
    refusal.type = vllm ? "Too Many Requests" : "rate_limit_error";
  } else if (status < 500) {
    refusal.type = vllm ? "BadRequestError" : "invalid_request_error";
  } else {
    refusal.type = vllm ? "InternalServerError" : "server_error";
  }
  return refusal;
}

}  // namespace

void Engine::handle(Connection& c, const RequestInfo& info, std::string_view body) {
  ++stats_.http_requests;
  if (info.path.starts_with("/emulator/")) return serve_admin(c, info, body);
  if (info.admin_only) return c.reply(404, kJson, "{\"detail\":\"Not Found\"}");
  options_.dialect == Dialect::Vllm ? serve_vllm(c, info, body) : serve_llamacpp(c, info, body);
}

void Engine::health(Connection& c) {
  const int status = fault_.health_status > 0 ? fault_.health_status : 200;
  if (options_.dialect == Dialect::Vllm) return c.reply(status, "", "");
  if (status == 200) return c.reply(200, kJsonUtf8, "{\"status\":\"ok\"}");
  c.reply(status, kJsonUtf8,
          refusal_body(options_.dialect, Api::Chat, fault_refusal(options_.dialect, status), 0));
}

void Engine::serve_vllm(Connection& c, const RequestInfo& info, std::string_view body) {
  const std::string& path = info.path;
  const bool get = info.method == http::Method::Get || info.method == http::Method::Head;
  const bool post = info.method == http::Method::Post;
  const auto wrong = [&](std::string_view allow) {
    const std::string field = "allow: " + std::string(allow) + "\r\n";
    c.reply(405, kJson, "{\"detail\":\"Method Not Allowed\"}", field);
  };
  if (const auto api = api_of(path))
    return post ? serve_generation(c, info, *api, body) : wrong("POST");
  if (path == "/health" || path == "/ping") return get || post ? health(c) : wrong("GET");
  if (path == "/metrics") return get ? c.reply(200, kText, metrics_text()) : wrong("GET");
  if (path == "/v1/models") return get ? c.reply(200, kJson, models_json()) : wrong("GET");
  if (path == "/version")
    return get ? c.reply(200, kJson, "{\"version\":\"0.32.0\"}") : wrong("GET");
  if (path == "/load") return get ? c.reply(200, kJson, "{\"server_load\":0}") : wrong("GET");
  if (path == "/v1/embeddings") return post ? embeddings(c, body) : wrong("POST");
  if (path == "/tokenize") return post ? tokenize(c, body) : wrong("POST");
  if (path == "/detokenize") {
    if (!post) return wrong("POST");
    const auto text = read_detokenize(body);
    if (!text) return refuse(c, Api::Chat, text.error());
    return c.reply(200, kJson, "{\"prompt\":" + json_string(*text) + "}");
  }
  if (path == "/v1/messages/count_tokens") {
    if (!post) return wrong("POST");
    // Counting needs no limit on the answer, so the body is read as a chat.
    const auto request = read_expect(Api::Chat, options_.dialect, body);
    if (!request) return refuse(c, Api::Messages, request.error());
    const auto count = token_count(request->prompts.front());
    return c.reply(200, kJson, "{\"input_tokens\":" + std::to_string(count) + "}");
  }
  c.reply(404, kJson, "{\"detail\":\"Not Found\"}");
}

void Engine::serve_llamacpp(Connection& c, const RequestInfo& info, std::string_view body) {
  const std::string& path = info.path;
  const bool get = info.method == http::Method::Get || info.method == http::Method::Head;
  const bool post = info.method == http::Method::Post;
  if (info.method == http::Method::Options)
    return c.reply(200, "text/html", "",
                   "Access-Control-Allow-Methods: GET, POST, DELETE, OPTIONS\r\n"
                   "Access-Control-Allow-Headers: *\r\n");
  if (const auto api = api_of(path); api && post)
    return serve_generation(c, info, *api, body);
  if (get && (path == "/health" || path == "/v1/health")) return health(c);
  if (get && path == "/metrics")
    return c.reply(200, "text/plain; version=0.0.4", metrics_text());
  if (get && (path == "/v1/models" || path == "/models"))
    return c.reply(200, kJsonUtf8, models_json());
  if (get && path == "/props") return c.reply(200, kJsonUtf8, props_json());
  if (get && path == "/slots") return c.reply(200, kJsonUtf8, slots_json());
  if (post && path == "/tokenize") return tokenize(c, body);
  if (post && (path == "/v1/embeddings" || path == "/embeddings"))
    return refuse(c, Api::Chat,
                  {501, "not_supported_error",
                   "This server does not support embeddings. Start it with `--embeddings`",
                   {}, -1});
  if (post && (path == "/apply-template" || path == "/v1/chat/completions/input_tokens" ||
               path == "/v1/messages/count_tokens")) {
    const auto request = read_expect(Api::Chat, options_.dialect, body);
    if (!request) return refuse(c, Api::Chat, request.error());
    const std::string& prompt = request->prompts.front();
    if (path == "/apply-template")
      return c.reply(200, kJsonUtf8, "{\"prompt\":" + json_string(prompt) + "}");
    const std::string count = std::to_string(token_count(prompt));
    const bool messages = path == "/v1/messages/count_tokens";
    return c.reply(200, kJsonUtf8,
                   "{\"input_tokens\":" + count +
                       (messages ? "}" : ",\"object\":\"response.input_tokens\"}"));
  }
  refuse(c, Api::Chat, {404, "not_found_error", "File Not Found", {}, -1});
}

void Engine::refuse(Connection& c, Api api, const Refusal& refusal) {
  const bool vllm = options_.dialect == Dialect::Vllm;
  c.reply(refusal.status, vllm ? kJson : kJsonUtf8,
          refusal_body(options_.dialect, api, refusal, context_tokens_));
}

// Whether a fault answers in the engine's stead.
bool Engine::spoil(Connection& c, const Fault& fault, Api api, std::string_view body) {
  if (fault.status == 0 && !fault.garbage && !fault.garbage_json) return false;
  ++stats_.spoilt;
  if (fault.garbage) {
    c.out() += std::string("\0\x7f<<< this is no HTTP >>>\r\n\r\n", 30);
    c.close(Connection::Close::Orderly);
  } else if (fault.garbage_json) {
    const auto request = read_generate(api, options_.dialect, body);
    const std::string_view broken = "{\"id\":\"x\",\"choices\":[{\"index\":0,";
    if (!request || !request->stream) {
      c.reply(200, kJson, broken);
    } else {
      EventStream events;
      c.begin_stream();
      events.attach(&c.out());
      events.chunk({"data: ", broken, "\n\n"}, 1);
      events.chunk({"data: [DONE]\n\n"}, 1);
      events.finish();
      c.end_request();
    }
  } else {
    const std::string fields =
        fault.retry_after < 0 ? std::string()
                              : "retry-after: " + std::to_string(fault.retry_after) + "\r\n";
    c.reply(fault.status, kJson,
            refusal_body(options_.dialect, api, fault_refusal(options_.dialect, fault.status),
                         context_tokens_),
            fields);
  }
  return true;
}

void Engine::serve_generation(Connection& c, const RequestInfo& info, Api api,
                              std::string_view body) {
  Fault fault;
  if (fault_.active() && fault_.times != 0) {
    fault = fault_;
    if (fault_.times > 0) --fault_.times;
  }
  if (spoil(c, fault, api, body)) return;
  auto request = read_generate(api, options_.dialect, body);
  std::optional<Refusal> refusal;
  if (!request) {
    refusal = request.error();
  } else {
    for (const std::string& prompt : request->prompts)
      if (!refusal) refusal = check(*request, std::max<std::int64_t>(1, token_count(prompt)));
    if (!refusal) refusal = check_rank(info);
  }
  if (refusal) {
    ++stats_.refused;
    return refuse(c, api, *refusal);
  }
  ++stats_.requests;
  std::vector<std::string> prompts = std::move(request->prompts);
  request->prompts.assign(prompts.size(), {});
  if (request->echo && api == Api::Completions) request->prompts = prompts;
  auto ex = make_exchange(info, std::move(*request));
  ex->rank = wanted_rank(info);
  ex->fault = fault;
  ex->events.arm(fault);
  ex->events.attach(&c.out());
  ex->connection = &c;
  if (ex->request.return_token_ids)
    for (std::size_t i = 0; i < ex->choices.size(); ++i)
      ex->choices[i].prompt_ids = token_ids(prompts[i / static_cast<std::size_t>(ex->request.n)]);
  c.serve(ex.get());
  // vLLM sends the head before anything is scheduled.
  if (ex->request.stream && options_.dialect == Dialect::Vllm) {
    c.begin_stream();
    ex->head_sent = true;
  }
  submit(std::move(ex), prompts);
}

// What is no number is no wish.
int Engine::wanted_rank(const RequestInfo& info) const {
  int rank = truth::Engine::kAnyRank;
  const char* const end = info.rank.data() + info.rank.size();
  const auto [rest, error] = std::from_chars(info.rank.data(), end, rank);
  const bool number = error == std::errc() && rest == end;
  return number && options_.dialect == Dialect::Vllm ? rank : truth::Engine::kAnyRank;
}

std::optional<Refusal> Engine::check_rank(const RequestInfo& info) const {
  const int rank = wanted_rank(info);
  if (rank >= truth::Engine::kAnyRank && rank < options_.ranks) return std::nullopt;
  return Refusal{400, "BadRequestError",
                 "data_parallel_rank " + std::to_string(rank) + " is out of range [0, " +
                     std::to_string(options_.ranks) + ").",
                 "data_parallel_rank", -1};
}

std::optional<Refusal> Engine::check(const GenerateRequest& r, std::int64_t prompt) const {
  const std::string limit = std::to_string(context_tokens_);
  const auto vllm_refusal = [](std::string message, std::string param, std::int64_t value) {
    message += " (parameter=" + param + ", value=" + std::to_string(value) + ")";
    return Refusal{400, "BadRequestError", std::move(message), std::move(param), -1};
  };
  if (r.prompts.size() * static_cast<std::size_t>(r.n) > 4000)
    return Refusal{400, "BadRequestError", "Too many prompts in one request.", "prompt", -1};
  if (options_.dialect == Dialect::LlamaCpp) {
    if (r.n > options_.slots)
      return Refusal{400, "invalid_request_error",
                     "Field 'n': Value must be between 1 <= value <= " +
                         std::to_string(options_.slots) + ", but got " + std::to_string(r.n),
                     {}, -1};
    if (prompt < context_tokens_) return std::nullopt;
    return Refusal{400, "exceed_context_size_error",
                   "request (" + std::to_string(prompt) +
                       " tokens) exceeds the available context size (" + limit +
                       " tokens), try increasing it",
                   {}, prompt};
  }
  if (!r.model.empty() && r.model != model_name_)
    return Refusal{404, "NotFoundError",
                   "The model `" + r.model + "` does not exist. Valid aliases: " + model_name_ +
                       ".",
                   "model", -1};
  if (r.max_tokens && *r.max_tokens > context_tokens_)
    return vllm_refusal("max_tokens=" + std::to_string(*r.max_tokens) +
                            " cannot be greater than max_model_len=" + limit +
                            ". Please request fewer output tokens.",
                        "max_tokens", *r.max_tokens);
  const std::string start =
      "This model's maximum context length is " + limit + " tokens. However, ";
  if (prompt >= context_tokens_)
    return vllm_refusal(start + "your prompt contains " + std::to_string(prompt) +
                            " input tokens, which exceeds this limit even without any output "
                            "tokens. Please reduce the length of the input prompt.",
                        "input_tokens", prompt);
  if (r.max_tokens && prompt + *r.max_tokens > context_tokens_)
    return vllm_refusal(start + "you requested " + std::to_string(*r.max_tokens) +
                            " output tokens and your prompt contains " + std::to_string(prompt) +
                            " input tokens. Please reduce the length of the input prompt or the "
                            "number of requested output tokens.",
                        "input_tokens", prompt);
  return std::nullopt;
}

AnswerRule Engine::rule(const GenerateRequest& r, std::int64_t prompt, int copy) const {
  AnswerRule rule;
  rule.seed = options_.text_seed + static_cast<std::uint64_t>(copy);
  rule.tokens_mean = options_.answer_tokens_mean;
  const std::int64_t room = std::max<std::int64_t>(1, context_tokens_ - prompt);
  const bool short_by_default =
      options_.dialect == Dialect::Vllm && r.api == Api::Completions && !r.max_tokens;
  rule.tokens_max = std::min(room, short_by_default ? 16 : r.max_tokens.value_or(room));
  rule.tokens_min = r.min_tokens;
  rule.ignore_end = r.ignore_eos;
  rule.stops = r.stops;
  return rule;
}

std::string Engine::new_id(Api api) {
  constexpr std::string_view kLetters =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const bool vllm = options_.dialect == Dialect::Vllm;
  std::string id = api == Api::Responses                  ? "resp_"
                   : api == Api::Completions && vllm      ? "cmpl-"
                                                          : "chatcmpl-";
  for (int i = 0; i < (vllm ? 16 : 32); ++i) id += kLetters[ids_.below(vllm ? 16 : 62)];
  return id;
}

std::unique_ptr<Exchange> Engine::make_exchange(const RequestInfo& info, GenerateRequest request) {
  auto ex = std::make_unique<Exchange>();
  ex->dialect = options_.dialect;
  ex->id = new_id(request.api);
  const std::string& asked = info.request_id.empty() ? request.request_id : info.request_id;
  if (options_.dialect == Dialect::Vllm && !asked.empty())
    ex->id = ex->id.substr(0, ex->id.find_first_of("-_") + 1) + asked;
  ex->client_request_id = info.request_id;
  ex->model = json_string(model_name_);
  ex->created = net::unix_nanos() / 1'000'000'000;
  ex->details = options_.prompt_tokens_details;
  ex->metrics = options_.request_metrics;
  ex->context_tokens = context_tokens_;
  ex->arrived = net::now();
  ex->choices.resize(request.prompts.size() * static_cast<std::size_t>(request.n));
  for (std::size_t i = 0; request.echo && i < ex->choices.size(); ++i)
    ex->choices[i].echo = request.api == Api::Completions
                              ? request.prompts[i / static_cast<std::size_t>(request.n)]
                              : request.continued;
  ex->request = std::move(request);
  ex->request.prompts.clear();
  return ex;
}

void Engine::embeddings(Connection& c, std::string_view body) {
  std::string model;
  const auto texts = read_embeddings(body, model);
  if (!texts) return refuse(c, Api::Chat, texts.error());
  if (!model.empty() && model != model_name_) {
    GenerateRequest named;
    named.model = model;
    return refuse(c, Api::Chat, *check(named, 1));
  }
  std::string out = "{\"id\":\"embd-" + new_id(Api::Chat).substr(9) +
                    "\",\"object\":\"list\",\"created\":" +
                    std::to_string(net::unix_nanos() / 1'000'000'000) +
                    ",\"model\":" + json_string(model_name_) + ",\"data\":[";
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < texts->size(); ++i) {
    tokens += token_count((*texts)[i]);
    Rng rng(text_identity((*texts)[i]) ^ options_.text_seed, "embedding");
    if (i > 0) out += ',';
    out += "{\"index\":" + std::to_string(i) + ",\"object\":\"embedding\",\"embedding\":[";
    for (int k = 0; k < 64; ++k)
      out += (k > 0 ? "," : "") + json_number(static_cast<float>(rng.uniform(-1, 1)));
    out += "]}";
  }
  const std::string count = std::to_string(tokens);
  out += "],\"usage\":{\"prompt_tokens\":" + count + ",\"total_tokens\":" + count +
         ",\"completion_tokens\":0,\"prompt_tokens_details\":null}}";
  c.reply(200, kJson, out);
}

void Engine::tokenize(Connection& c, std::string_view body) {
  const auto request = read_tokenize(options_.dialect, body);
  if (!request) return refuse(c, Api::Chat, request.error());
  const auto ids = token_ids(request->text);
  if (options_.dialect == Dialect::Vllm)
    return c.reply(200, kJson,
                   "{\"count\":" + std::to_string(ids.size()) +
                       ",\"max_model_len\":" + std::to_string(context_tokens_) +
                       ",\"tokens\":" + ids_json(ids) + ",\"token_strs\":null}");
  if (!request->pieces) return c.reply(200, kJsonUtf8, "{\"tokens\":" + ids_json(ids) + "}");
  std::string out = "{\"tokens\":[";
  for (std::size_t i = 0; i < ids.size(); ++i)
    out += (i > 0 ? ",{\"id\":" : "{\"id\":") + std::to_string(ids[i]) + ",\"piece\":" +
           json_string(std::string_view(request->text).substr(i * kTokenBytes, kTokenBytes)) + "}";
  c.reply(200, kJsonUtf8, out + "]}");
}

}  // namespace signalbox::emulator
