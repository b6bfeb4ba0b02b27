// SPDX-License-Identifier: Apache-2.0
// Board: the shuttle. Requests of a pool whose engines compute in passes over many ranks wait here
// until a pass of some engine begins; who boards, and where each sits, is planned over all who
// wait. Each is held for the place that it would have had, so that everybody else is placed as
// ever.
#include <algorithm>

#include "core/dispatch/auto_mode.h"
#include "core/flow/core.h"

namespace signalbox::flow {
namespace {

constexpr int kLine = 128;             // of those who wait, how many are considered for one pass
constexpr double kRhythmWeight = 0.2;  // of the newest pass

}  // namespace

// Gates of instances that stay as they are keep what they know.
void Core::group_ranks(PoolState& pool) {
  std::vector<Instance> before = std::exchange(pool.instances, {});
  const model::DispatchMode mode = pool.declared.dispatch;
  if (mode != model::DispatchMode::Auto) pool.acting = mode;
  if (mode != model::DispatchMode::Shuttle && mode != model::DispatchMode::Auto) return;
  std::map<std::string, std::size_t> by_address;
  for (const model::EndpointId id : pool.endpoints) {
    EndpointState& endpoint = endpoints_.at(id);
    const std::string& address = endpoint.declared.address;
    const auto [at, fresh] = by_address.try_emplace(address, pool.instances.size());
    if (fresh) pool.instances.emplace_back().address = address;
    Instance& instance = pool.instances[at->second];
    endpoint.instance = static_cast<std::uint32_t>(at->second);
    endpoint.rank = static_cast<std::uint32_t>(instance.ranks.size());
    instance.ranks.push_back(id);
  }
  for (Instance& instance : pool.instances) {
    const auto known = std::ranges::find_if(before, [&](const Instance& i) {
      return i.address == instance.address && i.ranks == instance.ranks;
    });
    if (known != before.end()) instance.gate = std::move(known->gate);
  }
  pool.watch.begin_anew();
  const bool ranks = std::ranges::any_of(
      pool.instances, [](const Instance& i) { return i.ranks.size() > 1; });
  if (mode == model::DispatchMode::Auto && !ranks) {  // nobody has a barrier with itself
    pool.instances.clear();
    pool.acting = model::DispatchMode::Immediate;
  }
  pool.board_at = pool.acting == model::DispatchMode::Shuttle ? Instant{} : kNever;
}

void Core::watch_gate(PoolState& pool, const Request& request, Instant now) {
  if (pool.declared.dispatch != model::DispatchMode::Auto) return;
  const EndpointState& endpoint = endpoints_.at(request.endpoint);
  pool.watch.first_token(endpoint.instance, endpoint.rank,
                         request.attempts > 1 ? request.sent : request.at, request.alone_due, now);
}

// `dispatch: auto`. Who is held for a pass that nobody announces any more departs at the next tick.
void Core::choose_mode(PoolState& pool) {
  const bool holds = pool.acting == model::DispatchMode::Shuttle;
  const bool should = !pool.instances.empty() &&
                      dispatch::should_hold(config_.dispatch, pool.watch,
                                            static_cast<int>(pool.instances.size()), holds);
  if (should == holds) return;
  pool.acting = should ? model::DispatchMode::Shuttle : model::DispatchMode::Immediate;
  pool.watch.begin_anew();
  pool.board_at = kNever;
  may_move_.insert(pool.declared.model);
}

// Every gate that is open takes whom it should.
void Core::board(PoolState& pool, Instant now, Actions& out) {
  if (drain_over_) return;
  pool.board_at = kNever;
  pool.rhythm.instances = static_cast<int>(std::ranges::count_if(
      pool.instances, [&](const Instance& i) {
        return std::ranges::any_of(i.ranks, [&](model::EndpointId id) {
          return endpoints_.at(id).healthy;
        });
      }));
  for (Instance& instance : pool.instances) {
    if (instance.gate.over()) board(pool, instance, now, out);
  }
  for (Instance& instance : pool.instances) {
    if (!instance.gate.over() && instance.gate.open(now)) board(pool, instance, now, out);
    if (!instance.gate.open(now)) {
      pool.board_at = std::min(pool.board_at, instance.gate.opens_at());
    }
  }
}

void Core::board(PoolState& pool, Instance& instance, Instant now, Actions& out) {
  if (queue_.empty(pool.declared.model) && !instance.gate.goes_on()) return;
  const perf::Coefficients c =
      pool.calibrator->effective(instance.ranks.front(), now).coefficients;
  ranks_.assign(instance.ranks.size(), {});
  dispatch::Instance car{ranks_};
  car.chunk_tokens = static_cast<double>(std::max<std::int64_t>(1, c.chunk_tokens));
  car.overhead_seconds = std::max(0.0, c.a);
  car.token_seconds = std::max(0.0, c.b);
  car.attention_seconds = std::max(0.0, c.c);
  instance.gate.add_left_over(car, now);
  line_up(pool, instance, c, now);
  stay_for_better(pool, instance, car, now);
  // A pass that starts by itself waits for nobody.
  dispatch::Rhythm rhythm = pool.rhythm;
  if (!instance.gate.over()) rhythm.pass = Duration::zero();
  const dispatch::Shuttle::Plan& plan = shuttle_.plan(line_, car, rhythm, now);
  if (plan.why == dispatch::Why::Filling) {
    pool.board_at = std::min(pool.board_at, plan.until);
    return;
  }
  boarded_.clear();
  const double length = car.pass_seconds();
  for (const dispatch::Departure& seat : plan.departures) {
    const dispatch::Passenger& p = plan.line[seat.passenger];
    Request& request = *find(p.request);
    const int boards = static_cast<int>(plan.departures.size());
    if (!depart(request, instance.ranks[seat.rank], boards, length, now, out)) continue;
    boarded_.push_back({p.request, request.attempt, seat.rank, p.tokens_on(seat.rank),
                        p.context_on(seat.rank), !request.arrived.stream});
  }
  // Nobody boards; but who goes on is in the next pass.
  if (boarded_.empty() && (!instance.gate.goes_on() || instance.gate.announced(now))) return;
  pass_begins(instance, car, now);
  if (boarded_.empty()) return;
  pool.rhythm.last_departure = now;
  if (pool.rhythm.pass <= Duration::zero()) pool.rhythm.pass = from_seconds(length);
}

// What the fullest rank computes, and in what time, tells the pool's speed: of a single prompt in a
// pass over many ranks nobody knows what it took.
void Core::pass_begins(Instance& instance, const dispatch::Instance& car, Instant now) {
  instance.pass_teaches = instance.gate.over();
  const auto fullest = std::ranges::max_element(ranks_, {}, &dispatch::Rank::seconds);
  const model::EndpointId id =
      instance.ranks[static_cast<std::size_t>(fullest - ranks_.begin())];
  const routing::Load load = load_.load(id, now);
  instance.pass = perf::prefill_when_idle(id, 0, fullest->tokens, 0);
  instance.pass.attention = fullest->attention;
  instance.pass.decoding = std::max(0, load.ours - load.queued);
  instance.pass.decoding_kv = static_cast<double>(load.kv_tokens);
  instance.gate.depart(now, from_seconds(car.pass_seconds()), car.chunk_tokens, boarded_);
}

// Those who may board this instance: held for this pool, or without a place, because all are full
// of those held.
void Core::line_up(const PoolState& pool, const Instance& instance, const perf::Coefficients& c,
                   Instant now) {
  line_.clear();
  int looked = 0;
  for (model::RequestId id = queue_.front(pool.declared.model); id && looked < kLine;
       id = queue_.next(id), ++looked) {
    const Request& request = *find(id);
    const PoolState* place = pool_of(request.held_for);
    if (place != nullptr && place != &pool) continue;
    if (auto p = passenger(request, pool, instance, c, now)) line_.push_back(*p);
  }
}

dispatch::Berth Core::berth(const Instance& instance, dispatch::Instance car, Instant now) {
  other_ranks_.assign(instance.ranks.size(), {});
  car.ranks = other_ranks_;
  instance.gate.add_left_over(car, now);
  return {to_seconds(instance.gate.begins_in(now)), car.pass_seconds(),
          instance.gate.passes_to_come(now),
          std::ranges::any_of(car.ranks, [](const dispatch::Rank& r) { return r.tokens <= 0; })};
}

// Who would better board the next pass of another instance stays for that, but not for ever.
void Core::stay_for_better(const PoolState& pool, const Instance& instance,
                           const dispatch::Instance& car, Instant now) {
  if (pool.instances.size() < 2) return;
  const dispatch::Berth here = berth(instance, car, now);
  others_.clear();
  for (const Instance& other : pool.instances) {
    if (&other == &instance || !endpoints_.at(other.ranks.front()).healthy) continue;
    others_.push_back(berth(other, car, now));
  }
  double waiting = 0;
  for (const dispatch::Passenger& p : line_) waiting += p.least_seconds();
  const double instances = static_cast<double>(others_.size() + 1);
  const dispatch::Crowd crowd{
      car.overhead_seconds + waiting / instances / static_cast<double>(car.ranks.size()),
      dispatch::share_that_waits(others_) * pool.arrivals.per_second(now) / instances};
  std::erase_if(line_, [&](const dispatch::Passenger& p) {
    const double patience =
        config_.dispatch.home_patience * (car.overhead_seconds + p.least_seconds()) +
        to_seconds(pool.rhythm.pass);
    if (to_seconds(now - p.since) > patience) return false;
    const double cost = dispatch::berth_cost(here, p, car, crowd);
    return std::ranges::any_of(others_, [&](const dispatch::Berth& other) {
      return other.free_rank && dispatch::berth_cost(other, p, car, crowd) < cost;
    });
  });
}

// A rank that is full of those who wait for it has room for who boards.
bool Core::could_take(model::EndpointId id, const routing::Query& q) const {
  routing::Reason why{};
  return load_.feasible(id, q, &why) || (why == routing::Reason::Full && load_.has_room(id));
}

// Nothing: no rank can take it, or it should wait for the instance that holds its prefix.
std::optional<dispatch::Passenger> Core::passenger(const Request& request, const PoolState& pool,
                                                   const Instance& instance,
                                                   const perf::Coefficients& c, Instant now) {
  const routing::Query q = ask(request, pools_of_model_.at(request.model));
  const auto prompt = static_cast<double>(q.prompt_tokens);
  double most = 0, sum = 0;
  int able = 0, home = -1;
  for (std::size_t rank = 0; rank < instance.ranks.size(); ++rank) {
    const model::EndpointId id = instance.ranks[rank];
    if (!could_take(id, q) || rests(id, now)) continue;
    const auto cached = static_cast<double>(match_.cached_tokens(id));
    sum += cached;
    ++able;
    if (cached <= most) continue;
    most = cached;
    home = static_cast<int>(rank);
  }
  if (able == 0) return std::nullopt;
  const auto to_do = [&](double cached) { return std::max(1.0, prompt - cached); };
  const double elsewhere = able > 1 ? (sum - most) / (able - 1) : most;
  dispatch::Passenger p;
  p.request = request.arrived.request;
  p.since = request.at;
  p.context = elsewhere;
  p.tokens = to_do(elsewhere);
  p.seconds = c.prefill_work(p.tokens, elsewhere);
  p.home = home;
  p.home_context = most;
  p.home_tokens = to_do(most);
  p.home_seconds = c.prefill_work(p.home_tokens, most);
  if (!may_leave_home(q, pool, instance, p.least_seconds(), c, now)) return std::nullopt;
  if (q.ttft != Duration::max()) {
    p.latest = request.at + q.ttft - from_seconds(c.a + p.least_seconds());
  }
  return p;
}

// Whether a request whose match is in match_ and that takes `seconds` here may go here, though
// another instance holds more of it.
bool Core::may_leave_home(const routing::Query& q, const PoolState& pool,
                          const Instance& instance, double seconds, const perf::Coefficients& c,
                          Instant now) const {
  if (match_.levels.empty()) return true;
  const cache::Level& deepest = match_.levels.front();
  for (const model::EndpointId holder : deepest.holders) {
    const auto at = endpoints_.find(holder);
    if (at == endpoints_.end() || at->second.declared.pool != pool.declared.id) continue;
    const Instance& home = pool.instances[at->second.instance];
    if (&home == &instance) return true;
    if (!at->second.healthy || !could_take(holder, q)) continue;
    const auto cached = static_cast<double>(deepest.tokens);
    const double fresh = std::max(1.0, static_cast<double>(match_.prompt_tokens) - cached);
    return dispatch::leaves_home(config_.dispatch, to_seconds(home.gate.busy(now)),
                                 seconds - c.prefill_work(fresh, cached),
                                 queue_.size(pool.declared.model), pool.endpoints.size());
  }
  return true;
}

// False: the rank cannot take it now.
bool Core::depart(Request& request, model::EndpointId id, int boarded, double pass_seconds,
                  Instant now, Actions& out) {
  let_go(request, now);
  decisions_.prepare();
  const routing::Query q = ask(request, pools_of_model_.at(request.model));
  if (load_.full() || !could_take(id, q)) return false;  // the next tick finds it a place
  routing::Decision decision;
  decision.kind = routing::Decision::Kind::Place;
  decision.endpoint = id;
  decision.count = 1;
  decision.evaluated = 1;
  decision.ask = load_.ask(q, now);
  decision.candidates[0] = load_.without_held(load_.inputs(id, q, now));
  ++totals_.decisions;
  ++totals_.candidates_evaluated;
  dispatch(request, decision, decision.candidates[0], now, out);
  queue_.remove(request.model, request.arrived.request);
  request.waiting = false;
  // The pass lasts as long as its fullest rank.
  const double longer = std::max(0.0, pass_seconds - request.ttft_predicted);
  request.ttft_predicted += longer;
  request.e2e_predicted += longer;
  if (DecisionRecord* record = decisions_.find(request.decision)) {
    record->ttft_predicted = request.ttft_predicted;
    record->e2e_predicted = request.e2e_predicted;
    record->boarded = boarded;
    record->pass_seconds = pass_seconds;
  }
  return true;
}

void Core::pass_computed(const Request& request, Instant now, Actions& out) {
  PoolState& pool = *pool_of(request.endpoint);
  Instance& instance = pool.instances.at(endpoints_.at(request.endpoint).instance);
  const auto pass = instance.gate.computed(request.arrived.request, request.attempt, now);
  if (!pass) return;
  if (std::exchange(instance.pass_teaches, false)) {
    instance.pass.seconds = to_seconds(*pass);
    pool.calibrator->observe(instance.pass, now);
  }
  pool.rhythm.pass += from_seconds(kRhythmWeight * to_seconds(*pass - pool.rhythm.pass));
  board(pool, now, out);
}

}  // namespace signalbox::flow
