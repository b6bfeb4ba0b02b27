// SPDX-License-Identifier: Apache-2.0
// Writes and replays the event log.
#include "app/event_log.h"

#include "app/controller.h"
#include "core/flow/flow.h"
#include "core/model/codec.h"
#include "core/spec/config.h"
#include "io/config/load.h"

namespace signalbox::app {
namespace {

constexpr std::string_view kMagic = "signalbox event log 1\n";

void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void put_fixed(std::string& out, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

bool get_varint(std::string_view& in, std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

std::uint64_t get_fixed(std::string_view in) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(in[i])) << (8 * i);
  }
  return value;
}

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t unzigzag(std::uint64_t raw) {
  return static_cast<std::int64_t>((raw >> 1) ^ (0 - (raw & 1)));
}

Error cut() { return invalid("The event log is cut or written by another version."); }

// The deciding rooms' settings travel as the Gateway document that declares them.
std::string settings_yaml(const flow::Config& config) {
  spec::Config document;
  document.gateway.admission = config.admission;
  document.gateway.cache = config.cache;
  document.gateway.prediction.calibration = config.calibrator;
  document.gateway.prediction.output_lengths = config.lengths;
  document.gateway.ledger = config.ledger;
  document.gateway.recovery = config.recovery;
  document.gateway.routing = config.routing;
  document.gateway.limits.decisions_kept = static_cast<int>(config.decisions_kept);
  return spec::to_yaml(document);
}

}  // namespace

std::uint64_t digest(const std::vector<model::OwnedAction>& actions) {
  std::string bytes;
  for (const model::OwnedAction& action : actions) model::encode(action, bytes);
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

Result<std::unique_ptr<EventLog>> EventLog::open(const std::string& path, std::uint64_t seed) {
  telemetry::LogFileConfig config;
  config.buffer_bytes_max = Bytes{64 << 20};  // a hole would make the log worthless
  TRY_ASSIGN(auto file, telemetry::LogFile::open(path, config));
  std::string head(kMagic);
  put_fixed(head, seed);
  file->append(head);
  return std::unique_ptr<EventLog>(new EventLog(std::move(file)));
}

void EventLog::applied(const flow::Setup& setup, Instant now,
                       const std::vector<model::OwnedAction>& actions) {
  std::string fleet;
  model::encode(*setup.fleet, fleet);
  payload_.clear();
  put_varint(payload_, fleet.size());
  payload_ += fleet;
  payload_ += settings_yaml(setup.config);
  write('S', payload_, now, actions);
}

void EventLog::handled(const model::Event& event, Instant now,
                       const std::vector<model::OwnedAction>& actions) {
  payload_.clear();
  model::encode(event, payload_);
  write('E', payload_, now, actions);
}

void EventLog::write(char type, std::string_view payload, Instant now,
                     const std::vector<model::OwnedAction>& actions) {
  std::string time;
  put_varint(time, zigzag((now - last_).count()));
  last_ = now;
  record_.clear();
  put_varint(record_, 1 + time.size() + payload.size() + 8);
  record_ += type;
  record_ += time;
  record_ += payload;
  put_fixed(record_, digest(actions));
  file_->append(record_);
}

namespace {

class Replayer {
 public:
  explicit Replayer(std::uint64_t seed) : seed_(seed) {}

  Result<void> take(std::string_view record, ReplayReport& report) {
    if (record.size() < 9) return cut();
    const char type = record.front();
    const std::uint64_t expected = get_fixed(record.substr(record.size() - 8));
    record = record.substr(1, record.size() - 9);
    std::uint64_t delta = 0;
    if (!get_varint(record, delta)) return cut();
    now_ += Duration(unzigzag(delta));
    actions_.clear();
    if (type == 'S') TRY_CHECK(apply(record, report));
    else if (type == 'E') TRY_CHECK(handle(record, report));
    else return cut();
    if (digest(actions_) != expected && report.identical) {
      report.identical = false;
      report.first_difference = report.events + report.setups;
      report.difference = type == 'S' ? "a configuration led to other actions"
                                      : "an event of kind " + std::to_string(kind_) +
                                            " led to other actions (" +
                                            std::to_string(actions_.size()) + " now)";
    }
    return {};
  }

 private:
  Result<void> apply(std::string_view record, ReplayReport& report) {
    std::uint64_t size = 0;
    if (!get_varint(record, size) || size > record.size()) return cut();
    TRY_ASSIGN(model::Fleet fleet, model::decode_fleet(record.substr(0, size)));
    TRY_ASSIGN(const config::Loaded loaded,
               config::load_text("event log", std::string(record.substr(size))));
    flow::Setup setup{core_config(loaded.config.gateway),
                      std::make_shared<const model::Fleet>(std::move(fleet))};
    if (!flow_) flow_ = std::make_unique<flow::Flow>(setup.config, seed_);
    flow_->apply(setup, now_, actions_);
    ++report.setups;
    return {};
  }

  Result<void> handle(std::string_view record, ReplayReport& report) {
    TRY_ASSIGN(model::Event event, model::decode_event(record));
    if (!flow_) return cut();
    kind_ = event.index();
    flow_->handle(std::move(event), now_, actions_);
    ++report.events;
    return {};
  }

  std::uint64_t seed_;
  std::unique_ptr<flow::Flow> flow_;
  Instant now_{};
  std::vector<model::OwnedAction> actions_;
  std::size_t kind_ = 0;
};

}  // namespace

Result<ReplayReport> replay_log(std::string_view bytes) {
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + 8) {
    return invalid("This is no event log of Signalbox: its first line is missing.");
  }
  Replayer replayer(get_fixed(bytes.substr(kMagic.size())));
  bytes.remove_prefix(kMagic.size() + 8);
  ReplayReport report;
  while (!bytes.empty()) {
    std::uint64_t size = 0;
    if (!get_varint(bytes, size) || size > bytes.size()) return cut();
    TRY_CHECK(replayer.take(bytes.substr(0, size), report));
    bytes.remove_prefix(size);
  }
  return report;
}

}  // namespace signalbox::app
