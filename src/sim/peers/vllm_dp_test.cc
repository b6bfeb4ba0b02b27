// SPDX-License-Identifier: Apache-2.0
// Goal: vLLM's balance over ranks. Method: worked by hand.
#include "sim/peers/desk_for_test.inc"

namespace signalbox::peers {
namespace {

TEST(VllmDp, FourWaitingAgainstRunning) {
  Desk desk(vllm_dp());
  desk.look(0, 1, 6);  // 10
  desk.look(1, 0, 9);  // 9
  desk.look(2, 2, 0);  // 8
  EXPECT_EQ(desk.slot({}), 2u);
}

TEST(VllmDp, EachChoiceWaitsUntilTheNextStatistics) {
  Desk desk(vllm_dp());
  std::vector<Slot> turns;
  for (int i = 0; i < 4; ++i) turns.push_back(desk.send({}).slot);
  EXPECT_EQ(turns, (std::vector<Slot>{0, 1, 2, 0}));
  desk.look(1, 0, 3);  // 3, against 8 and 4
  EXPECT_EQ(desk.send({}).slot, 1u);
  EXPECT_EQ(desk.send({}).slot, 2u);  // 1 is at 7 now
  desk.look(0, 0, 0);
  EXPECT_EQ(desk.send({}).slot, 0u);
  EXPECT_EQ(vllm_dp()->traits().look_every, 100ms);
}

}  // namespace
}  // namespace signalbox::peers
