// SPDX-License-Identifier: Apache-2.0
// Clients come, get their answers, come back, leave.
#include <utility>

#include "sim/world.h"

namespace signalbox::sim {

void World::session() {
  if (requests_ >= static_cast<std::uint64_t>(scenario_.load.requests)) return;
  arrive(load_.first_turn());
  at(now_ + load_.until_next_session(), Due::Session);
}

void World::arrive(Ask ask) {
  if (requests_ >= static_cast<std::uint64_t>(scenario_.load.requests)) return;
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
  if (ask.leaves_after >= Duration::zero()) {
    at(now_ + ask.leaves_after, Due::Leave, 0, id.value());
  }
  Client client;
  client.arrived = now_;
  client.owner = event.owner;
  client.ask = std::move(ask);
  clients_.emplace(id, std::move(client));
  feed(std::move(event));
}

void World::leave(model::RequestId request) {
  const auto found = clients_.find(request);
  if (found == clients_.end() || found->second.gone) return;
  found->second.gone = true;
  send(model::ClientGone{request}, Duration::zero());
}

// The answer has reached the client, whatever it is.
void World::conclude(const model::Conclude& action) {
  const auto found = clients_.find(action.request);
  CHECK(found != clients_.end());
  const Client& client = found->second;
  if (action.outcome == model::Outcome::Completed) {
    const Duration e2e = now_ - client.arrived;
    const Duration ttft = client.has_first ? client.first - client.arrived : e2e;
    report_.e2e.record(to_seconds(e2e));
    report_.ttft.record(to_seconds(ttft));
    if (ttft <= scenario_.ttft_wanted && e2e <= scenario_.e2e_wanted) ++report_.good;
    if (load_.goes_on()) {
      turns_.emplace(++parked_, load_.next_turn(client.ask));
      at(now_ + load_.thinks(), Due::Turn, 0, parked_);
    }
  }
  clients_.erase(found);
}

}  // namespace signalbox::sim
