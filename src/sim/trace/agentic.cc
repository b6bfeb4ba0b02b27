// SPDX-License-Identifier: Apache-2.0
// Reads a session's rows, then joins them: who waits for whom, and which prompt begins like which.
#include "sim/trace/agentic.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/trace/table.h"

namespace signalbox::trace {
namespace {

constexpr std::int64_t kBlockTokens = 64;
constexpr double kSecondsMax = 1e8;
constexpr std::int64_t kSessionsMax = 1'000'000'000;

struct Row {
  std::int64_t agent = 0;  // 0: the parent
  double start = 0;        // s
  double end = 0;          // s; the start, where the service time was not recorded
  double think = -1;       // s; negative: not recorded
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int32_t prefix = -1;
  std::int64_t shared = 0; // blocks
  bool final = false;      // its agent's last
};

struct Preamble {
  std::int64_t tools = 0;
  std::int64_t system = 0;
};
using Preambles = std::map<std::int64_t, Preamble>;

class Builder {
 public:
  explicit Builder(const Preambles& preambles) : preambles_(preambles) {}
  void add(std::int64_t session, std::vector<Row>& rows);
  Trace finish() { return std::move(trace_); }

 private:
  void append(Call& call, std::uint64_t content, std::int64_t tokens, bool common);
  void begin(Call& call, std::int64_t session, std::int64_t room);
  void repeat(Call& call, const Row& row, const Call& earlier, const Row& its_row);
  std::int32_t cut(std::int32_t piece, std::int64_t tokens);
  void wait(Call& call, std::size_t index, const std::vector<Row>& rows, std::int32_t first);

  const Preambles& preambles_;
  Trace trace_;
  std::vector<std::int64_t> ends_;  // tokens up to and with each piece
};

void Builder::append(Call& call, std::uint64_t content, std::int64_t tokens, bool common) {
  if (tokens <= 0) return;
  call.prompt_tokens += tokens;
  trace_.pieces.push_back({call.last, content, tokens, common});
  ends_.push_back(call.prompt_tokens);
  call.last = static_cast<std::int32_t>(trace_.pieces.size() - 1);
}

// Equal lengths of tools, and then of system prompts, are taken for equal ones.
void Builder::begin(Call& call, std::int64_t session, std::int64_t room) {
  const auto found = preambles_.find(session);
  if (found == preambles_.end()) return;
  const Preamble& p = found->second;
  if (p.tools + p.system > room) return;
  const std::uint64_t tools = mixed(5, static_cast<std::uint64_t>(p.tools));
  append(call, tools, p.tools, true);
  append(call, mixed(tools, static_cast<std::uint64_t>(p.system)), p.system, true);
}

// The piece that ends these tokens of the prompt that `piece` ends.
std::int32_t Builder::cut(std::int32_t piece, std::int64_t tokens) {
  const auto place = [](std::int32_t at) { return static_cast<std::size_t>(at); };
  if (tokens <= 0) return -1;
  while (true) {
    const Piece& last = trace_.pieces[place(piece)];
    const std::int64_t begin = ends_[place(piece)] - last.tokens;
    if (tokens == ends_[place(piece)]) return piece;
    if (tokens > begin) {
      trace_.pieces.push_back({last.before, last.content, tokens - begin, last.common});
      ends_.push_back(tokens);
      return static_cast<std::int32_t>(trace_.pieces.size() - 1);
    }
    piece = last.before;
  }
}

void Builder::repeat(Call& call, const Row& row, const Call& earlier, const Row& its_row) {
  const bool whole = row.shared == its_row.input / kBlockTokens;
  if (whole && row.input >= its_row.input + its_row.output) {
    call.last = earlier.last;
    call.prompt_tokens = its_row.input;
    return append(call, earlier.answer, its_row.output, false);
  }
  call.prompt_tokens = row.shared * kBlockTokens;
  call.last = cut(earlier.last, call.prompt_tokens);
}

void Builder::wait(Call& call, std::size_t index, const std::vector<Row>& rows,
                   std::int32_t first) {
  const Row& row = rows[index];
  std::size_t before = index;  // none
  for (std::size_t i = index; i-- > 0 && before == index;) {
    if (rows[i].agent == row.agent) before = i;
  }
  const bool continues = before != index;
  std::size_t awaited = before;
  for (std::size_t i = 0; i < index; ++i) {
    const Row& other = rows[i];
    if (!continues && other.agent == 0 && other.start <= row.start) awaited = i;
    const bool joins = continues && row.agent == 0 && other.final && other.agent != 0 &&
                       other.start >= rows[before].start && other.end <= row.start;
    if (joins && other.end > rows[awaited].end) awaited = i;
  }
  if (awaited == index) return;
  call.after = first + static_cast<std::int32_t>(awaited);
  const bool own = awaited == before && row.think >= 0;
  call.think = from_seconds(own ? row.think : std::max(0.0, row.start - rows[awaited].end));
}

void Builder::add(std::int64_t session, std::vector<Row>& rows) {
  std::map<std::int64_t, std::size_t> finals;
  for (std::size_t i = 0; i < rows.size(); ++i) finals[rows[i].agent] = i;
  for (const auto& [agent, index] : finals) rows[index].final = true;
  const auto first = static_cast<std::int32_t>(trace_.calls.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const std::uint64_t number = trace_.calls.size();
    Call call;
    call.at = from_seconds(row.start);
    call.output_tokens = std::max<std::int64_t>(1, row.output);
    call.answer = mixed(6, number);
    if (row.prefix >= 0) {
      const auto earlier = static_cast<std::size_t>(row.prefix);
      repeat(call, row, trace_.calls[static_cast<std::size_t>(first) + earlier], rows[earlier]);
    } else if (i == 0) {
      begin(call, session, row.input);
    }
    append(call, mixed(7, number), row.input - call.prompt_tokens, false);
    wait(call, i, rows, first);
    trace_.lasts = std::max(trace_.lasts, call.at);
    trace_.calls.push_back(call);
  }
  trace_.sessions.push_back({first, static_cast<std::int32_t>(rows.size()), Duration(-1)});
}

Result<Preambles> read_preambles(std::string_view text) {
  enum Column { Session, Tools, System };
  Table table(text, "agentic sessions", {"session", "tool_tokens", "system_tokens"});
  Preambles all;
  while (table.next()) {
    const std::int64_t session = table.integer(Session, {0, kSessionsMax});
    Preamble& p = all[session];
    if (!table.empty(Tools)) p.tools = table.integer(Tools, {0, kTokensMax});
    if (!table.empty(System)) p.system = table.integer(System, {0, kTokensMax});
  }
  if (table.error()) return *table.error();
  return all;
}

enum CallColumn {
  InSession, Subagent, Index, Start, Think, Service, Input, Output, Prefix, Shared
};

Row read_row(Table& table, const std::vector<Row>& earlier) {
  Row row;
  const auto count = static_cast<std::int64_t>(earlier.size());
  if (!table.empty(Subagent)) row.agent = 1 + table.integer(Subagent, {0, kSessionsMax});
  table.integer(Index, {static_cast<double>(count), static_cast<double>(count)});
  row.start = table.real(Start, {0, kSecondsMax});
  row.end = row.start + (table.empty(Service) ? 0 : table.real(Service, {0, kSecondsMax}));
  if (!table.empty(Think)) row.think = table.real(Think, {0, kSecondsMax});
  row.input = table.integer(Input, {1, kTokensMax});
  row.output = table.integer(Output, {0, kTokensMax});
  row.prefix = static_cast<std::int32_t>(table.integer(Prefix, {-1, count - 1.0}));
  // A refused row has a prefix of 0, which may not exist.
  const bool has_prefix = row.prefix >= 0 && row.prefix < count;
  const std::int64_t from =
      has_prefix ? earlier[static_cast<std::size_t>(row.prefix)].input : 0;
  const std::int64_t most = std::min(row.input, from) / kBlockTokens;
  row.shared = table.integer(Shared, {0, static_cast<double>(most)});
  return row;
}

}  // namespace

Result<Trace> read_agentic(std::string_view calls, std::string_view sessions) {
  TRY_ASSIGN(const Preambles preambles, read_preambles(sessions));
  Table table(calls, "agentic calls",
              {"session", "subagent", "call", "t_s", "think_s", "api_s", "input_tokens",
               "output_tokens", "prefix_of_call", "shared_blocks"});
  Builder builder(preambles);
  std::vector<Row> rows;
  std::int64_t present = -1;
  while (table.next()) {
    const std::int64_t session = table.integer(InSession, {0, kSessionsMax});
    if (session != present && !rows.empty()) {
      builder.add(present, rows);
      rows.clear();
    }
    present = session;
    const Row row = read_row(table, rows);
    if (!table.error()) rows.push_back(row);
  }
  if (!table.error() && rows.empty()) table.fail("there is no call; write one a line.");
  if (table.error()) return *table.error();
  builder.add(present, rows);
  return builder.finish();
}

}  // namespace signalbox::trace
