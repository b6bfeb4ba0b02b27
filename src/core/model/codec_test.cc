// SPDX-License-Identifier: Apache-2.0
// Goal: what is encoded decodes to the same, and broken bytes are refused. Method: values with
// every field away from its default, compared by their encoding, and every prefix of it.
#include "core/model/codec.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace signalbox::model {
namespace {

std::vector<Event> samples() {
  RequestArrived arrived{RequestId(7), 3, TenantId(2), RouteId(9), Api::Responses, true,
                         0xFFFFFFFFu, 12345, 64, 2, {}};
  arrived.prompt = {{{0xDEADBEEFDEADBEEFull, 2048}, {1, -5}}, 4096, Script::Cjk};
  AttemptEnded ended{RequestId(1ull << 60), AttemptId(2), AttemptResult::Truncated, 200, true, true,
                     17, Duration(-1), {10, 5, 17}, {Duration(1), Duration(2), Duration(3), 5}};
  EngineState state;
  state.running = 3;
  state.kv_usage = 0.25;
  state.prefill_seconds = {1.5, 10};
  state.incarnation = ~0ull;
  state.asleep = true;
  return {arrived,
          ClientGone{RequestId(5)},
          FirstToken{RequestId(5), AttemptId(1)},
          ended,
          Progress{{{RequestId(1), AttemptId(1), 100}, {RequestId(2), AttemptId(3), -4}}},
          EndpointObserved{EndpointId(4), state},
          EndpointUnreachable{EndpointId(4)},
          DrainOver{},
          Tick{}};
}

std::string bytes_of(const Event& event) {
  std::string out;
  encode(event, out);
  return out;
}

TEST(Codec, EveryEventComesBackAsItWas) {
  ASSERT_EQ(samples().size(), std::variant_size_v<Event>);
  for (const Event& event : samples()) {
    const std::string bytes = bytes_of(event);
    const auto back = decode_event(bytes);
    ASSERT_TRUE(back.has_value()) << event.index();
    EXPECT_EQ(back->index(), event.index());
    EXPECT_EQ(bytes_of(*back), bytes);
  }
}

TEST(Codec, ACutOrLengthenedEventIsRefused) {
  for (const Event& event : samples()) {
    const std::string bytes = bytes_of(event);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_event(std::string_view(bytes).substr(0, size)).has_value())
          << event.index() << " cut at " << size;
    }
    EXPECT_FALSE(decode_event(bytes + "x").has_value());
  }
}

TEST(Codec, RandomBytesNeverBreakTheDecoder) {
  Rng rng(1, "codec");
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(rng.below(64), '\0');
    for (char& c : bytes) c = static_cast<char>(rng.next());
    (void)decode_event(bytes);
    (void)decode_fleet(bytes);
  }
}

TEST(Codec, AValueBeyondItsEnumIsRefused) {
  RequestArrived arrived;
  arrived.prompt.script = Script::Code;
  std::string bytes;
  encode(Event(arrived), bytes);
  ASSERT_TRUE(decode_event(bytes).has_value());
  ASSERT_EQ(bytes.back(), static_cast<char>(Script::Code)) << "the script comes last";
  bytes.back() = static_cast<char>(Script::Code) + 1;
  EXPECT_FALSE(decode_event(bytes).has_value());
}

TEST(Codec, TheFleetComesBackAsItWas) {
  Fleet fleet;
  fleet.models.push_back({ModelId(1), "m", "Llama-3.1-70B", 70, 0, 8192, {"lora"}});
  Pool pool;
  pool.id = PoolId(2);
  pool.name = "p";
  pool.tenants = {TenantId(3)};
  pool.usd_per_hour = 2.5;
  fleet.pools.push_back(pool);
  fleet.endpoints.push_back({EndpointId(4), PoolId(2), "127.0.0.1:8000", 1, true});
  fleet.tenants.push_back({TenantId(3), "t", 10});
  fleet.objectives.push_back(
      {ObjectiveId(5), "o", Duration(1), Duration(2), Duration::max(), 4, 100});
  fleet.routes.push_back(
      {RouteId(6), "r", {{ModelId(1), 0.5}}, {ModelId(1)}, ObjectiveId(5), {TenantId(3)}});
  std::string bytes;
  encode(fleet, bytes);
  const auto back = decode_fleet(bytes);
  ASSERT_TRUE(back.has_value());
  std::string again;
  encode(*back, again);
  EXPECT_EQ(again, bytes);
  EXPECT_EQ(back->objectives[0].e2e, Duration::max());
  EXPECT_EQ(back->endpoints[0].address, "127.0.0.1:8000");
}

}  // namespace
}  // namespace signalbox::model
