// SPDX-License-Identifier: Apache-2.0
// Writes and replays the event log.
#include "app/event_log.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "core/flow/config_of.h"
#include "core/model/codec.h"
#include "core/spec/config.h"
#include "io/config/load.h"

namespace signalbox::app {
namespace {

constexpr std::string_view kMagic = "signalbox event log 4";
constexpr std::string_view kContinued = ", continued after record ";
constexpr std::string_view kAnyVersion = "signalbox event log ";

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

std::uint64_t checksum(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

// `body`: type, time, payload, digest.
void seal(const std::string& body, std::string& record) {
  record.clear();
  put_varint(record, body.size() + 8);
  record += body;
  put_fixed(record, checksum(body));
}

std::string sealed_head(std::string line, std::uint64_t seed) {
  put_fixed(line, seed);
  put_fixed(line, checksum(line));
  return line;
}

std::string gap_record(std::uint64_t lost) {
  std::string body = "G";
  put_varint(body, 0);
  put_varint(body, lost);
  put_fixed(body, 0);
  std::string record;
  seal(body, record);
  return record;
}

// The deciding rooms' settings travel as the Gateway document that declares them.
std::string settings_yaml(const flow::Config& config) {
  spec::Config document;
  document.gateway = flow::gateway_of(config);
  return spec::to_yaml(document);
}

}  // namespace

std::uint64_t digest(const std::vector<model::OwnedAction>& actions) {
  std::string bytes;
  for (const model::OwnedAction& action : actions) model::encode(action, bytes);
  return checksum(bytes);
}

Result<std::unique_ptr<EventLog>> EventLog::open(const std::string& path, std::uint64_t seed) {
  telemetry::LogFileConfig config;
  config.buffer_bytes_max = Bytes{64 << 20};  // what comes after a hole cannot be replayed
  TRY_ASSIGN(auto file, telemetry::LogFile::open(path, config, &gap_record,
                                                  telemetry::LogFile::Use::Alone));
  std::error_code none;
  const auto before = path == "-" ? 0 : std::filesystem::file_size(path, none);
  std::string head;
  if (!none && before > 0) head += '\0';  // an earlier run, and how it ended is unknown
  head += sealed_head(std::string(kMagic) + "\n", seed);
  file->append(head);
  return std::unique_ptr<EventLog>(new EventLog(std::move(file), path, seed));
}

void EventLog::reopen() {
  std::string head(kMagic);
  head += kContinued;
  head += std::to_string(records_) + " of " + path_ + "\n";
  file_->reopen(sealed_head(std::move(head), seed_));
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
  record_.clear();
  record_ += type;
  put_varint(record_, zigzag((now - last_).count()));
  last_ = now;
  record_ += payload;
  put_fixed(record_, digest(actions));
  seal(record_, sealed_);
  file_->append(sealed_);
  ++records_;
}

namespace {

// Whether everything that the fleet names is in it, as the core relies on.
bool whole(const model::Fleet& fleet) {
  std::set<model::ModelId> models;
  std::set<model::PoolId> pools;
  std::set<model::EndpointId> endpoints;
  for (const model::Model& m : fleet.models) {
    if (!m.id || !models.insert(m.id).second) return false;
  }
  for (const model::Pool& p : fleet.pools) {
    if (!p.id || !models.contains(p.model) || !pools.insert(p.id).second) return false;
  }
  for (const model::Endpoint& e : fleet.endpoints) {
    if (!e.id || !pools.contains(e.pool) || !endpoints.insert(e.id).second) return false;
  }
  return true;
}

// One run: its records in order, whatever files they lie in.
class Replayer {
 public:
  Replayer(std::uint64_t seed, LogListener* listener) : seed_(seed), listener_(listener) {
    if (listener_ != nullptr) listener_->begins();
  }
  ~Replayer() {
    if (listener_ != nullptr && flow_) listener_->ends(*flow_);
  }
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;

  std::uint64_t seed() const { return seed_; }
  std::uint64_t records() const { return records_; }

  // `file`: for messages.
  Result<void> take_all(std::string_view bytes, const std::string& file, ReplayReport& report) {
    while (!bytes.empty()) {
      file_ = &file;
      ++records_;
      std::uint64_t size = 0;
      if (!get_varint(bytes, size) || size > bytes.size()) {
        return invalid("'" + file + "' is cut: its last record, " + std::to_string(records_) +
                       " of the run, is not whole. What is before it decides " +
                       (report.identical ? "the same." : "differently."));
      }
      TRY_CHECK(take(bytes.substr(0, size), report));
      bytes.remove_prefix(size);
    }
    return {};
  }

 private:
  Error broken(const std::string& why) const {
    return invalid("Record " + std::to_string(records_) + " in '" + *file_ + "' " + why);
  }

  Result<void> take(std::string_view record, ReplayReport& report) {
    const std::size_t sealed_size = std::max<std::size_t>(record.size(), 8) - 8;
    if (record.size() < 18 ||
        checksum(record.substr(0, sealed_size)) != get_fixed(record.substr(sealed_size))) {
      return broken("is damaged: its checksum does not fit its bytes. What is before it decides " +
                    std::string(report.identical ? "the same." : "differently."));
    }
    record.remove_suffix(8);
    const char type = record.front();
    const std::uint64_t expected = get_fixed(record.substr(record.size() - 8));
    record = record.substr(1, record.size() - 9);
    std::uint64_t delta = 0;
    if (!get_varint(record, delta)) return broken("has no time: the file is damaged.");
    now_ += Duration(unzigzag(delta));
    actions_.clear();
    if (type == 'G') return gap(record, report);
    if (type == 'S') TRY_CHECK(apply(record, report));
    else if (type == 'E') TRY_CHECK(handle(record, report));
    else return broken("is of a kind that this version does not know: the file is damaged, or a "
                       "newer version wrote it.");
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

  Error gap(std::string_view record, const ReplayReport& report) const {
    std::uint64_t lost = 0;
    get_varint(record, lost);
    return invalid(std::to_string(lost) + " records are missing in '" + *file_ + "' after record " +
                   std::to_string(records_ - 1) +
                   " of the run: the disk was full or slower than the traffic. What is before them "
                   "decides " + (report.identical ? "the same." : "differently."));
  }

  Result<void> apply(std::string_view record, ReplayReport& report) {
    std::uint64_t size = 0;
    if (!get_varint(record, size) || size > record.size()) {
      return broken("holds half a configuration: the file is damaged.");
    }
    auto fleet = model::decode_fleet(record.substr(0, size));
    if (!fleet || !whole(*fleet)) {
      return broken("holds a fleet that this version cannot read: another version wrote it, or "
                    "the file is damaged.");
    }
    const auto loaded = config::load_text("Gateway settings", std::string(record.substr(size)));
    if (!loaded) {
      return broken("holds settings that this version does not accept; replay the log with the "
                    "version that wrote it. " + loaded.error().message);
    }
    flow::Setup setup{flow::config_of(loaded->config.gateway),
                      std::make_shared<const model::Fleet>(std::move(*fleet))};
    if (!flow_) flow_ = std::make_unique<flow::Flow>(setup.config, seed_);
    flow_->apply(setup, now_, actions_);
    if (listener_ != nullptr) listener_->applied(setup, now_);
    ++report.setups;
    return {};
  }

  Result<void> handle(std::string_view record, ReplayReport& report) {
    auto event = model::decode_event(record);
    if (!event) {
      return broken("holds an event that this version cannot read: another version wrote it, or "
                    "the file is damaged.");
    }
    if (!flow_) return broken("is an event before any configuration: the log's beginning is gone.");
    kind_ = event->index();
    if (listener_ != nullptr) listener_->handled(*event, now_);
    flow_->handle(std::move(*event), now_, actions_);
    ++report.events;
    return {};
  }

  std::uint64_t seed_;
  LogListener* listener_;
  std::uint64_t records_ = 0;
  const std::string* file_ = nullptr;
  std::unique_ptr<flow::Flow> flow_;
  Instant now_{};
  std::vector<model::OwnedAction> actions_;
  std::size_t kind_ = 0;
};

struct Head {
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> after;  // continued after this record; absent: a run begins
};

// Takes the head from the front of `bytes`.
Result<Head> take_head(std::string_view& bytes, const std::string& file) {
  const std::size_t end = bytes.substr(0, 8192).find('\n');
  if (!bytes.starts_with(kAnyVersion) || end == std::string_view::npos) {
    return invalid("'" + file + "' is no event log of Signalbox: its first line is missing.");
  }
  const std::string_view whole_head = bytes.substr(0, end + 1 + 16);
  std::string_view rest = bytes.substr(0, end);
  if (!rest.starts_with(kMagic)) {
    return invalid("'" + file + "' is '" + std::string(rest) + "'; this version reads '" +
                   std::string(kMagic) + "'. Replay it with the version that wrote it.");
  }
  Head head;
  rest.remove_prefix(kMagic.size());
  if (rest.starts_with(kContinued)) {
    std::uint64_t after = 0;
    std::from_chars(rest.data() + kContinued.size(), rest.data() + rest.size(), after);
    head.after = after;
  } else if (!rest.empty()) {
    return invalid("'" + file + "' is no event log of Signalbox: its first line is damaged.");
  }
  bytes.remove_prefix(end + 1);
  if (bytes.size() < 16) return invalid("'" + file + "' is cut: it has no seed.");
  head.seed = get_fixed(bytes);
  if (checksum(whole_head.substr(0, end + 1 + 8)) != get_fixed(bytes.substr(8))) {
    return invalid("'" + file + "' is damaged: the checksum of its head does not fit.");
  }
  bytes.remove_prefix(16);
  return head;
}

// Why a continuation does not fit behind what was replayed before it.
Error out_of_order(const std::string& file, const Head& head, const Replayer* run) {
  std::string why = "'" + file + "' continues a log after its record " +
                    std::to_string(*head.after);
  if (run == nullptr) why += ", and nothing is before it";
  else if (run->seed() != head.seed) why += ", and what is before it is of another run";
  else why += ", and what is before it ends with record " + std::to_string(run->records());
  return invalid(why + ": name all files of the run, oldest first (signalbox replay "
                       "events.log.2 events.log.1 events.log).");
}

}  // namespace

Result<std::vector<std::string>> read_log_files(const std::vector<std::string>& paths) {
  std::vector<std::string> contents;
  for (const std::string& path : paths) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();  // unlike an iterator, tells of a folder by its state
    if (!in.is_open() || bytes.tellp() <= 0) {
      return invalid("'" + path + "' is empty or cannot be read");
    }
    contents.push_back(std::move(bytes).str());
  }
  return contents;
}

std::vector<LogPiece> pieces_of(const std::vector<std::string>& paths,
                                const std::vector<std::string>& bytes) {
  std::vector<LogPiece> pieces;
  for (std::size_t i = 0; i < bytes.size(); ++i) pieces.push_back({paths.at(i), bytes[i]});
  return pieces;
}

Result<ReplayReport> replay_logs(const std::vector<LogPiece>& pieces, LogListener* listener) {
  const std::string marker = std::string(1, '\0') + std::string(kMagic);
  ReplayReport report;
  std::unique_ptr<Replayer> run;
  for (const LogPiece& piece : pieces) {
    std::string_view bytes = piece.bytes;
    while (true) {
      TRY_ASSIGN(const Head head, take_head(bytes, piece.name));
      if (!head.after) {
        run.reset();
        run = std::make_unique<Replayer>(head.seed, listener);
      } else if (!run || run->seed() != head.seed || run->records() != *head.after) {
        return out_of_order(piece.name, head, run.get());
      }
      const std::size_t next = bytes.find(marker);  // another run that was appended
      TRY_CHECK(run->take_all(bytes.substr(0, next), piece.name, report));
      if (next == std::string_view::npos) break;
      bytes.remove_prefix(next + 1);
    }
  }
  return report;
}

Result<ReplayReport> replay_log(std::string_view bytes) {
  return replay_logs({{"event log", bytes}});
}

}  // namespace signalbox::app
