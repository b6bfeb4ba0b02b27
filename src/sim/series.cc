// SPDX-License-Identifier: Apache-2.0
// Finds and merges buckets.
#include "sim/series.h"

#include <algorithm>

namespace signalbox::sim {

void Bucket::add(const Bucket& other) {
  moments += other.moments;
  for (double Moment::* figure : {&Moment::queued, &Moment::waiting, &Moment::running, &Moment::kv,
                                  &Moment::instances, &Moment::starting}) {
    sum.*figure += other.sum.*figure;
  }
  queued_max = std::max(queued_max, other.queued_max);
  kv_max = std::max(kv_max, other.kv_max);
  arrived += other.arrived;
  answered += other.answered;
  good += other.good;
  ttft_sum += other.ttft_sum;
  ttft_max = std::max(ttft_max, other.ttft_max);
}

Bucket& Series::bucket(Instant at) {
  const Duration since = at.time_since_epoch();
  while (since / width_ >= static_cast<Duration::rep>(kBucketsMax)) {
    for (std::size_t i = 0; i < buckets_.size(); i += 2) {
      Bucket merged = buckets_[i];
      if (i + 1 < buckets_.size()) merged.add(buckets_[i + 1]);
      buckets_[i / 2] = merged;
    }
    buckets_.resize((buckets_.size() + 1) / 2);
    width_ *= 2;
  }
  const auto index = static_cast<std::size_t>(since / width_);
  if (index >= buckets_.size()) buckets_.resize(index + 1);
  return buckets_[index];
}

void Series::look(Instant at, const Moment& moment) {
  Bucket one;
  one.moments = 1;
  one.sum = moment;
  one.queued_max = moment.queued;
  one.kv_max = moment.kv;
  bucket(at).add(one);
}

void Series::answered(Instant at, double ttft, bool good) {
  Bucket& here = bucket(at);
  ++here.answered;
  if (good) ++here.good;
  here.ttft_sum += ttft;
  here.ttft_max = std::max(here.ttft_max, ttft);
}

Bucket Series::between(Duration from, Duration until) const {
  Bucket all;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const Duration begins = width_ * static_cast<Duration::rep>(i);
    if (begins >= from && begins < until) all.add(buckets_[i]);
  }
  return all;
}

double Series::seconds_between(Duration from, Duration until) const {
  Duration sum{};
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const Duration begins = width_ * static_cast<Duration::rep>(i);
    if (begins >= from && begins < until) sum += width_;
  }
  return to_seconds(sum);
}

}  // namespace signalbox::sim
