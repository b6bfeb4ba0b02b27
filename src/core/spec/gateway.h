// SPDX-License-Identifier: Apache-2.0
// Kind Gateway: how this process listens, what it accepts, how long it waits, where it logs.
// Settings of deciding modules are declared in their own config.h and nested here as blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/time.h"
#include "core/admission/config.h"
#include "core/cache/config.h"
#include "core/dispatch/config.h"
#include "core/ledger/config.h"
#include "core/perf/calibrator.h"
#include "core/perf/output_length.h"
#include "core/recovery/config.h"
#include "core/routing/config.h"
#include "core/spec/address.h"
#include "core/spec/field.h"

namespace signalbox::spec {

struct Admin {
  Address listen{"127.0.0.1", 9090};
  KeySource token;
  std::vector<std::string> hosts;
  bool operator==(const Admin&) const = default;
};

template <typename V>
void describe(V& v, Admin& c) {
  v(c.listen, "listen", "Address of metrics, health and the admin API.", AtStart{});
  v(c.token, "token", "Token that every admin request must carry; needed beyond loopback.");
  v(c.hosts, "hosts", "Names that a Host header may carry here besides the address itself.",
    Range{0, 64});
}

struct Tls {
  std::string cert;
  std::string key;
  std::string client_ca;
  bool operator==(const Tls&) const = default;
};

template <typename V>
void describe(V& v, Tls& c) {
  v(c.cert, "cert", "PEM file with the certificate chain; empty: no TLS. Reread when it changes.");
  v(c.key, "key", "PEM file with the private key.");
  v(c.client_ca, "client_ca", "PEM file with the authorities that clients must be signed by.");
}

// What one request, one connection and this process may take up.
struct Limits {
  Bytes header_block{64 << 10};
  int header_fields = 100;
  Bytes header_line{8 << 10};
  Bytes body{8 << 20};
  Bytes bodies{1 << 30};
  int json_depth = 64;
  int messages = 4096;
  int inputs = 2048;
  int connections = 0;
  int n = 16;
  int best_of = 16;
  std::int64_t max_tokens = 1 << 20;
  int logprobs = 20;
  int top_logprobs = 20;
  int stop_sequences = 16;
  Bytes stop_length{1 << 10};
  int tools = 128;
  int schema_depth = 32;
  int logit_bias = 1024;
  Bytes event{256 << 10};
  Bytes answer_held{1 << 20};
  Bytes answer_assembled{32 << 20};
  Bytes client_buffer{1 << 20};
  int upstream_idle = 64;
  int label_values = 1000;
  int decisions_kept = 10'000;
  bool operator==(const Limits&) const = default;
};

template <typename V>
void describe(V& v, Limits& c) {
  v(c.header_block, "header_block", "A request or response head in all.", Range{1 << 10, 1 << 20});
  v(c.header_fields, "header_fields", "Fields in a head.", Range{8, 1000});
  v(c.header_line, "header_line", "One line of a head.", Range{256, 1 << 20});
  v(c.body, "body", "A request body; a Route may set its own.", Range{1 << 10, 1 << 30});
  v(c.bodies, "bodies", "Request bodies in this process at once; who sends more is answered 503.",
    Range{1 << 20, 1e12});
  v(c.json_depth, "json_depth", "Nesting of a JSON body.", Range{4, 1024});
  v(c.messages, "messages", "Messages in one request.", Range{1, 1e6});
  v(c.inputs, "inputs", "Prompts or inputs in one request.", Range{1, 1e6});
  v(c.connections, "connections", "Client connections; 0: half of the open files allowed.",
    Range{0, 1e7});
  v(c.n, "n", "Answers that one request may ask for.", Range{1, 1024});
  v(c.best_of, "best_of", "Candidates that one request may ask for.", Range{1, 1024});
  v(c.max_tokens, "max_tokens", "Tokens that one request may ask for.", Range{1, 1e9});
  v(c.logprobs, "logprobs", "Value of `logprobs` in a completion.", Range{0, 1e6});
  v(c.top_logprobs, "top_logprobs", "Value of `top_logprobs` in a chat.", Range{0, 1e6});
  v(c.stop_sequences, "stop_sequences", "Stop sequences in one request.", Range{0, 1e6});
  v(c.stop_length, "stop_length", "One stop sequence.", Range{1, 1 << 20});
  v(c.tools, "tools", "Tools in one request.", Range{0, 1e6});
  v(c.schema_depth, "schema_depth", "Nesting of a tool's or an answer's schema.", Range{1, 1024});
  v(c.logit_bias, "logit_bias", "Entries of `logit_bias`.", Range{0, 1e6});
  v(c.event, "event", "Part of a streamed event held until its end comes.",
    Range{1 << 10, 1 << 26});
  v(c.answer_held, "answer_held", "Plain answers up to this are held whole, to be tried again.",
    Range{0, 1 << 30});
  v(c.answer_assembled, "answer_assembled",
    "Largest plain answer that is put together from a stream, as llama.cpp is asked for one.",
    Range{1 << 16, 1 << 30});
  v(c.client_buffer, "client_buffer", "Bytes held for a client that reads slowly.",
    Range{1 << 12, 1 << 30});
  v(c.upstream_idle, "upstream_idle", "Idle connections kept per endpoint and thread.",
    Range{0, 1e5});
  v(c.label_values, "label_values", "Values of one metric label; the rest count as `other`.",
    Range{16, 1e6});
  v(c.decisions_kept, "decisions_kept", "Decisions that the admin API can still explain.",
    AtStart{{0, 1e7}});
}

struct Timeouts {
  Duration request_head = std::chrono::seconds(10);
  Duration body_idle = std::chrono::seconds(30);
  Duration request_body = std::chrono::seconds(600);
  Duration write_idle = std::chrono::seconds(60);
  Duration keep_alive_idle = std::chrono::seconds(75);
  Duration tls_handshake = std::chrono::seconds(10);
  Duration connect = std::chrono::seconds(2);
  Duration first_token = std::chrono::seconds(120);
  Duration plain_answer = std::chrono::seconds(600);
  Duration event_idle = std::chrono::seconds(60);
  Duration upstream_keep_alive_idle = std::chrono::seconds(4);
  Duration drain_notice = Duration::zero();
  Duration drain = std::chrono::seconds(30);
  bool operator==(const Timeouts&) const = default;
};

template <typename V>
void describe(V& v, Timeouts& c) {
  v(c.request_head, "request_head", "From a request's first byte to the end of its head.",
    Range{0.01, 3600});
  v(c.body_idle, "body_idle", "Silence inside a request body.", Range{0.01, 3600});
  v(c.request_body, "request_body", "From the end of a request's head to the end of its body.",
    Range{0.01, 86400});
  v(c.write_idle, "write_idle", "A client takes no byte of its answer.", Range{0.01, 86400});
  v(c.keep_alive_idle, "keep_alive_idle",
    "A client connection without a request; a new one has `request_head` at least.",
    Range{0, 86400});
  v(c.tls_handshake, "tls_handshake", "A TLS handshake on either side.", Range{0.01, 3600});
  v(c.connect, "connect", "Connecting to an engine.", Range{0.001, 3600});
  v(c.first_token, "first_token", "From sending a request to the engine's first token.",
    Range{0.01, 86400});
  v(c.plain_answer, "plain_answer",
    "From sending a request that streams nothing to the engine's answer.", Range{0.01, 86400});
  v(c.event_idle, "event_idle",
    "Silence of an engine inside its answer; comments in its stream are silence, too.",
    Range{0.01, 86400});
  v(c.upstream_keep_alive_idle, "upstream_keep_alive_idle",
    "An idle engine connection; below the engine's own, which is 5s for many.", Range{0, 3600});
  v(c.drain_notice, "drain_notice",
    "After a stop was asked for, connections are taken for this long while `/readyz` fails: what a "
    "load balancer needs to notice.", Range{0, 3600});
  v(c.drain, "drain",
    "Then, time for requests in flight; who is left at its end gets an error.", Range{0, 86400});
}

struct Sse {
  Duration keep_alive_comment = std::chrono::seconds(15);
  bool operator==(const Sse&) const = default;
};

template <typename V>
void describe(V& v, Sse& c) {
  v(c.keep_alive_comment, "keep_alive_comment",
    "A comment goes to the client after this much silence in a stream; 0: never.",
    Range{0, 3600});
}

struct Observe {
  Duration resolve_interval = std::chrono::seconds(30);
  Duration scrape_timeout = std::chrono::seconds(2);
  bool operator==(const Observe&) const = default;
};

template <typename V>
void describe(V& v, Observe& c) {
  v(c.resolve_interval, "resolve_interval", "How often host names of engines are looked up again.",
    Range{1, 86400});
  v(c.scrape_timeout, "scrape_timeout", "One look at an engine's metrics.", Range{0.01, 60});
}

struct Logs {
  std::string access;
  std::string decisions;
  std::string events;
  bool operator==(const Logs&) const = default;
};

template <typename V>
void describe(V& v, Logs& c) {
  v(c.access, "access", "File for a line per request; `-`: standard output; empty: none.",
    AtStart{});
  v(c.decisions, "decisions",
    "File for a JSON line per placement; `-`: standard output; empty: none.", AtStart{});
  v(c.events, "events",
    "File for the binary event log that `signalbox replay` reads; empty: none.", AtStart{});
}

struct Cors {
  std::vector<Origin> origins;
  bool operator==(const Cors&) const = default;
};

template <typename V>
void describe(V& v, Cors& c) {
  v(c.origins, "origins", "Browser origins that may call this gateway; empty: none.",
    Range{0, 1000});
}

// How predictions are learnt. The blocks belong to core/perf.
struct Prediction {
  perf::CalibratorConfig calibration;
  perf::OutputLengthsConfig output_lengths;
};

template <typename V>
void describe(V& v, Prediction& c) {
  v(c.calibration, "calibration", "Scaling of the engine profiles by what engines do.");
  v(c.output_lengths, "output_lengths", "Expected lengths of answers.");
}

struct Gateway {
  std::string name = "gateway";  // metadata.name
  Address listen{"127.0.0.1", 8080};
  Admin admin;
  Tls tls;
  bool insecure = false;
  int threads = 0;
  std::vector<Cidr> trusted_peers;
  std::vector<std::string> client_fields;
  bool decision_headers = true;
  bool watch_files = true;
  Cors cors;
  Limits limits;
  Timeouts timeouts;
  Sse sse;
  Observe observe;
  Logs logs;
  admission::Config admission;
  cache::Config cache;
  Prediction prediction;
  ledger::Config ledger;
  recovery::Config recovery;
  dispatch::Config dispatch;
  routing::Config routing;
  bool operator==(const Gateway& other) const;
};

template <typename V>
void describe(V& v, Gateway& c) {
  v(c.listen, "listen", "Address for clients.", AtStart{});
  v(c.admin, "admin", "The admin listener.");
  v(c.tls, "tls", "TLS towards clients.");
  v(c.insecure, "insecure",
    "Listen beyond loopback although nothing authenticates the clients.");
  v(c.threads, "threads", "I/O threads; 0: one per core.", AtStart{{0, 256}});
  v(c.trusted_peers, "trusted_peers",
    "Networks whose peers may tell us client addresses and identities.", Range{0, 1000});
  v(c.client_fields, "client_fields",
    "Names of clients' header fields that engines get, beside content type, accept, credentials, "
    "cookies, trace context and others that the gateway knows; what steers engines or has an "
    "underscore never passes. Empty: all pass but those, and identities.", Range{0, 1000});
  v(c.decision_headers, "decision_headers", "Tell clients the placement in x-signalbox-* headers.");
  v(c.watch_files, "watch_files", "Reload when the configuration files change.", AtStart{});
  v(c.cors, "cors", "Calls from browsers.");
  v(c.limits, "limits", "The most that a request, a connection or this process takes up.");
  v(c.timeouts, "timeouts", "How long we wait, for what.");
  v(c.sse, "sse", "Streams.");
  v(c.observe, "observe", "Looking at engines.");
  v(c.logs, "logs", "Log files; they reopen on SIGUSR1.");
  v(c.admission, "admission", "Requests that wait for an endpoint.");
  v(c.cache, "cache", "Knowledge of which engine holds which prompt's beginning.",
    AtStart{});
  v(c.prediction, "prediction", "How predictions are learnt.", AtStart{});
  v(c.ledger, "ledger", "Totals of outcomes, tokens and cost.", AtStart{});
  v(c.recovery, "recovery", "What happens when engines fail.");
  v(c.dispatch, "dispatch", "When requests go, in pools that do not dispatch at once.");
  v(c.routing, "routing", "Where requests go.");
}

}  // namespace signalbox::spec
