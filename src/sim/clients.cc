// SPDX-License-Identifier: Apache-2.0
// Users and their programs: tasks come, each becomes one request or more, and ends answered, failed
// or left. What a program does by itself is told in sdk.h.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/sdk.h"
#include "sim/world.h"

namespace signalbox::sim {

// When the load brings the next task; kNever: no more, unless one under way brings another.
Instant World::coming() const {
  const Load& load = scenario_.load;
  if (tasks_begun_ >= static_cast<std::uint64_t>(load.requests)) return kNever;
  const Instant next = load_->next();
  if (load.lasts > Duration::zero() && next >= Instant{} + load.lasts) return kNever;
  return next;
}

void World::await_arrival() {
  const Instant next = coming();
  if (next >= arrival_at_) return;
  arrival_at_ = std::max(now_, next);
  at(arrival_at_, Due::Arrive, 0, ++arrival_arming_);
}

void World::arrive(std::uint64_t arming) {
  if (arming != arrival_arming_) return;
  if (coming() <= now_) begin(load_->take());
  arrival_at_ = kNever;
  await_arrival();
}

void World::begin(Ask ask) {
  const std::uint64_t number = ++tasks_begun_;
  if (ask.leaves_after >= Duration::zero()) at(now_ + ask.leaves_after, Due::Leave, 0, number);
  if (ask.presses_after >= Duration::zero()) at(now_ + ask.presses_after, Due::Press, 0, number);
  Task task;
  task.ask = std::move(ask);
  task.began = now_;
  task.counted = now_ >= Instant{} + scenario_.load.warm_up;
  if (task.counted) ++report_.tasks;
  tasks_.emplace(number, std::move(task));
  request(number, 0);
}

// Sends the task's request once more; `retries` times its library has done so before.
void World::request(std::uint64_t number, int retries) {
  Task& task = tasks_.at(number);
  const Ask& ask = task.ask;
  const model::RequestId id(++requests_);
  model::RequestArrived event;
  event.request = id;
  event.owner = static_cast<std::uint16_t>(rng_.below(static_cast<std::uint64_t>(
      scenario_.threads)));
  event.tenant = ask.session.tenant;
  event.route = ask.session.route;
  event.api = ask.api;
  event.stream = ask.stream;
  event.lora = ask.session.lora;
  event.output_max = ask.output_max;
  event.prompt = prompt_of(ask.session.lora, ask.session.history);
  event.body_bytes = event.prompt.bytes + 200;
  task.requests.push_back(id);
  clients_.emplace(id, Client{ask, number, retries, now_, event.owner, false, 0, {}, false});
  if (const Duration timeout = scenario_.load.sdk.timeout; timeout > Duration::zero()) {
    at(now_ + timeout, Due::Timeout, 0, id.value());
  }
  report_.series.arrived(now_);
  decider_->asked(id, ask);
  feed(std::move(event));
}

void World::ask_again(std::uint64_t number, int retries) {
  const auto found = tasks_.find(number);
  if (found == tasks_.end() || found->second.retries_due == 0) return;
  --found->second.retries_due;
  if (found->second.counted) ++report_.client_retries;
  request(number, retries);
}

// The user sees nothing yet and asks the same again; the first request runs on.
void World::press(std::uint64_t number) {
  const auto found = tasks_.find(number);
  if (found == tasks_.end() || found->second.done || found->second.left) return;
  for (const model::RequestId request : found->second.requests) {
    if (clients_.at(request).has_first) return;
  }
  if (found->second.counted) ++report_.pressed;
  request(number, 0);
}

void World::leave(std::uint64_t number) {
  const auto found = tasks_.find(number);
  if (found == tasks_.end() || found->second.done) return;
  found->second.left = true;
  found->second.retries_due = 0;
  for (const model::RequestId request : found->second.requests) hang_up(request);
  settle(number);
}

// The library has waited for a first byte for as long as it does.
void World::time_out(model::RequestId request) {
  const auto found = clients_.find(request);
  if (found == clients_.end() || found->second.gone || found->second.has_first) return;
  if (tasks_.at(found->second.task).counted) ++report_.client_timeouts;
  hang_up(request);
  failed(found->second.task, found->second.retries, Duration::zero());
}

void World::hang_up(model::RequestId request) {
  Client& client = clients_.at(request);
  if (client.gone) return;
  client.gone = true;
  // The core hears of it when the engine is done.
  if (drains_on_abort(client.flight)) return;
  send(model::ClientGone{request}, Duration::zero());
}

// The answer has reached the client, whatever it is.
void World::conclude(const model::Conclude& action) {
  const auto found = clients_.find(action.request);
  CHECK(found != clients_.end());
  const Client client = found->second;
  clients_.erase(found);
  Task& task = tasks_.at(client.task);
  std::erase(task.requests, action.request);
  if (action.outcome == model::Outcome::Completed) report_.answer_tokens += client.tokens;
  if (action.outcome == model::Outcome::Truncated) report_.lost_tokens += client.tokens;
  if (!client.gone) {
    if (action.outcome == model::Outcome::Completed) {
      succeeded(task, client);
    } else if (is_retried(action.outcome)) {
      // The header has whole seconds.
      const double seconds = std::ceil(to_seconds(action.retry_after));
      failed(client.task, client.retries, from_seconds(std::max(0.0, seconds)));
    }
  }
  settle(client.task);
}

void World::succeeded(Task& task, const Client& client) {
  const Instant first = client.has_first ? client.first : now_;
  const auto good = [&](Instant from) {
    return first - from <= scenario_.ttft_wanted && now_ - from <= scenario_.e2e_wanted;
  };
  if (task.counted) {
    report_.e2e.record(to_seconds(now_ - client.arrived));
    report_.ttft.record(to_seconds(first - client.arrived));
    if (client.has_first && task.ask.answer_tokens > 1) {
      report_.tpot.record(to_seconds(now_ - first) /
                          static_cast<double>(task.ask.answer_tokens - 1));
    }
    if (good(client.arrived)) ++report_.good;
  }
  report_.series.answered(now_, to_seconds(first - client.arrived), good(client.arrived));
  if (task.done) return;
  task.done = true;
  task.retries_due = 0;
  if (task.counted) {
    ++report_.tasks_done;
    if (good(task.began)) ++report_.tasks_good;
    report_.task_e2e.record(to_seconds(now_ - task.began));
    report_.task_ttft.record(to_seconds(first - task.began));
  }
  load_->ended(task.ask, Ending::Answered, now_);
  await_arrival();
}

// One request of the task has failed; its library may send it again.
void World::failed(std::uint64_t number, int retries, Duration retry_after) {
  Task& task = tasks_.at(number);
  if (task.done) return;
  const auto delay = retry_delay(scenario_.load.sdk, retries, retry_after, sdk_rng_);
  if (!delay) return;
  ++task.retries_due;
  at(now_ + *delay, Due::Retry, static_cast<std::uint32_t>(retries + 1), number);
}

// Forgets the task when nothing of it is under way or to come.
void World::settle(std::uint64_t number) {
  const auto found = tasks_.find(number);
  const Task& task = found->second;
  if (!task.requests.empty() || task.retries_due > 0) return;
  if (!task.done) {
    load_->ended(task.ask, task.left ? Ending::Left : Ending::Failed, now_);
    await_arrival();
  }
  tasks_.erase(found);
}

}  // namespace signalbox::sim
