// SPDX-License-Identifier: Apache-2.0
// Goal: an error says what, where and how to mend it. Method: a table of wrong files, each with its
// whole message.
#include <gtest/gtest.h>

#include <string>

#include "io/config/load.h"

namespace signalbox::config {
namespace {

// The spec begins in line 5.
std::string of(const std::string& kind, const std::string& spec) {
  return "apiVersion: signalbox.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: x}\nspec:\n" +
         spec + "\n";
}
std::string gateway(const std::string& spec) { return of("Gateway", spec); }
std::string pool(const std::string& spec) {
  return of("Pool", spec) + "---\n" + of("Model", "  params_b: 8");
}
std::string tenant(const std::string& spec) { return of("Tenant", spec); }

struct Wrong {
  std::string text;
  std::string message;
};

const std::string kHash(64, 'a');

const Wrong kTable[] = {
    // Syntax.
    {"a: [1, 2",
     "c.yaml:1:4: a `[` has no `]` after it; close the list."},
    {"a:\n  b: {c: 2, d: [3]\n",
     "c.yaml:2:6: a `{` has no `}` after it; close the block."},
    {"a: 1\n\tb: 2",
     "c.yaml:2:1: a tab stands where spaces are needed; indent with spaces."},
    {"a: \"x",
     "c.yaml:1:4: a quoted text begins here, and no quotes end it; close the quotes."},
    {"a: 'x\nb: 2\n",
     "c.yaml:1:4: a quoted text begins here, and no quotes end it; close the quotes."},
    {"a: it's\nb: 'it''s\nc: \"2\"\n",
     "c.yaml:2:4: a quoted text begins here, and no quotes end it; close the quotes."},
    {"\xEF\xBB\xBF" "a: \"x\"\r\nb: \"\xC3\xA9\\\\\\\"\r\nc: 3\r\n",
     "c.yaml:2:4: a quoted text begins here, and no quotes end it; close the quotes."},
    {"a: 1\n'b: 2\n",
     "c.yaml:2:1: a quoted text begins here, and no quotes end it; close the quotes."},
    {"a: [1, 'b]\nc: 2\n",
     "c.yaml:1:8: a quoted text begins here, and no quotes end it; close the quotes."},
    {"a: 1\nb: 'x\n---\na: 2\n",
     "c.yaml:2:4: a quoted text begins here, and no quotes end it; close the quotes."},
    {"a: ! 'x\n",
     "c.yaml:1:4: tags (`!name`) are not read; remove it."},
    {"a: 1\na: b: c",
     "c.yaml:2:5: a `:` makes no sense here; put text that contains `: ` in quotes, or mend "
     "the indent."},
    {"a: \xFF",
     "c.yaml:1:4: a byte here is no UTF-8 text; save it as UTF-8."},
    {"a: &x 1\nb: 2",
     "c.yaml:1:4: anchors (`&name`) are not read; remove it."},
    {"a: 1\nb: *x",
     "c.yaml:2:4: aliases (`*name`) are not read; write what it stands for, or put the text "
     "in quotes."},
    {"a: !!str 1",
     "c.yaml:1:4: tags (`!name`) are not read; remove it."},
    {"a: 1\n<<: {b: 1}",
     "c.yaml:2:1: merge keys (`<<`) are not read; repeat the settings."},
    {"? [a]\n: 1",
     "c.yaml:1:3: a key is a list or a block; keys are text."},
    {"- a\n- b",
     "c.yaml:1:1: is a list where a resource (a block with `kind`) is expected."},
    {"just text",
     "c.yaml:1:1: is a single value where a resource (a block with `kind`) is expected."},
    {"%YAML 1.2\n,--- a",
     "c.yaml:2:1: no document can begin here; write `---` before it."},
    // The envelope.
    {"kind: Model\nmetadata: {name: m}",
     "c.yaml:1:1: `apiVersion` is missing; write `apiVersion: signalbox.dev/v1alpha1`."},
    {"apiVersion: signalbox.dev/v1\nkind: Model\nmetadata: {name: m}",
     "c.yaml:1:13: `signalbox.dev/v1` is unknown to this version; write "
     "`signalbox.dev/v1alpha1`."},
    {"apiVersion: signalbox.dev/v1alpha1\nmetadata: {name: m}",
     "c.yaml:1:1: `kind` is missing; write one of `Gateway`, `Model`, `Pool`, `Tenant`, "
     "`Objective`, `Route`."},
    {"apiVersion: signalbox.dev/v1alpha1\nkind: Poll\nmetadata: {name: m}",
     "c.yaml:2:7: `Poll` is no kind; did you mean `Pool`?"},
    {"apiVersion: signalbox.dev/v1alpha1\nkind: Model",
     "c.yaml:1:1: `metadata` is missing; write `metadata: {name: NAME}`."},
    {"apiVersion: signalbox.dev/v1alpha1\nkind: Model\nmetadata: {nmae: m}",
     "c.yaml:3:1: metadata: `name` is missing.\n"
     "c.yaml:3:12: metadata: there is no field `nmae` here; did you mean `name`?"},
    {"apiVersion: signalbox.dev/v1alpha1\nkind: Model\nmetadata: {name: -m}",
     "c.yaml:3:18: metadata: `-m` is no name: it takes letters, digits and - _ . / : @ +, "
     "starts and ends with a letter or digit, has at most 253."},
    {"apiVersion: signalbox.dev/v1alpha1\nkind: Model\nmetadata: {name: 7}",
     "c.yaml:3:18: metadata: `7` is no text; put it in quotes if it is meant as a name."},
    {"apiVersion: signalbox.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspecs: {}",
     "c.yaml:4:1: there is no field `specs` here; did you mean `spec`?"},
    // Keys and forms.
    {gateway("  limits:\n    boddy: 8MiB"),
     "c.yaml:6:5: Gateway/x.spec.limits: there is no setting `boddy` here; did you mean "
     "`body`?"},
    {gateway("  listen: 127.0.0.1:1\n  threads: 2\n  listen: 127.0.0.1:2"),
     "c.yaml:7:3: Gateway/x.spec: `listen` is set twice, first in line 5; remove one."},
    {gateway("  limits:"),
     "c.yaml:5:3: Gateway/x.spec.limits: has no value; write a block of settings or remove "
     "the line."},
    {gateway("  limits: 8MiB"),
     "c.yaml:5:11: Gateway/x.spec.limits: is a single value where a block of settings is "
     "expected."},
    {gateway("  listen: [127.0.0.1:1]"),
     "c.yaml:5:11: Gateway/x.spec.listen: is a list where one address is expected."},
    {gateway("  trusted_peers: 10.0.0.0/8"),
     "c.yaml:5:18: Gateway/x.spec.trusted_peers: is a single value where a list is expected."},
    // Scalars.
    {gateway("  timeouts: {connect: 2}"),
     "c.yaml:5:23: Gateway/x.spec.timeouts.connect: `2` has a number without a unit; write a "
     "duration like `30s`, `250ms` or `1m30s`."},
    {gateway("  timeouts: {connect: 2sec}"),
     "c.yaml:5:23: Gateway/x.spec.timeouts.connect: `2sec` has the unknown unit `sec` (units "
     "are d, h, m, s, ms, us, ns); write a duration like `30s`, `250ms` or `1m30s`."},
    {gateway("  timeouts: {connect: 2h}"),
     "c.yaml:5:23: Gateway/x.spec.timeouts.connect: `2h` is out of range; write from 1ms to "
     "1h."},
    {gateway("  limits: {body: 8MB8}"),
     "c.yaml:5:18: Gateway/x.spec.limits.body: `8MB8` has the unknown unit `MB8` (units are "
     "B, KiB, MiB, GiB, TiB, kB, MB, GB, TB); write a size like `8MiB`, `64KiB`, `1GB` or "
     "`512B`."},
    {gateway("  limits: {body: 1B}"),
     "c.yaml:5:18: Gateway/x.spec.limits.body: `1B` is out of range; write from 1KiB to 1GiB."},
    {gateway("  limits: {body: 8MiB, bodies: 4MiB}"),
     "c.yaml:5:18: Gateway/x.spec.limits.body: is more than `bodies`, all of them together; lower "
     "it."},
    {gateway("  limits: {header_line: 128KiB}"),
     "c.yaml:5:25: Gateway/x.spec.limits.header_line: is more than `header_block`; lower it."},
    {gateway("  threads: 1.5"),
     "c.yaml:5:12: Gateway/x.spec.threads: `1.5` is no whole number."},
    {gateway("  threads: \"2\""),
     "c.yaml:5:12: Gateway/x.spec.threads: `2` is text; remove the quotes."},
    {gateway("  threads: 010"),
     "c.yaml:5:12: Gateway/x.spec.threads: `010` begins with a needless zero; remove it."},
    {gateway("  threads: 300"),
     "c.yaml:5:12: Gateway/x.spec.threads: `300` is out of range; write from 0 to 256."},
    {gateway("  insecure: yes"),
     "c.yaml:5:13: Gateway/x.spec.insecure: `yes` is neither true nor false."},
    {gateway("  logs: {access: true}"),
     "c.yaml:5:18: Gateway/x.spec.logs.access: `true` is no text; put it in quotes if it is "
     "meant as a name."},
    {gateway("  listen: localhost"),
     "c.yaml:5:11: Gateway/x.spec.listen: `localhost` has no port; write an address like "
     "`127.0.0.1:8080` or `[::1]:8080`."},
    {gateway("  listen: :8080"),
     "c.yaml:5:11: Gateway/x.spec.listen: `:8080` has no host; write `0.0.0.0` for every "
     "interface or `127.0.0.1`."},
    // Rules.
    {gateway("  listen: 0.0.0.0:8080"),
     "c.yaml:5:11: Gateway/x.spec.listen: `0.0.0.0:8080` serves everybody who reaches this "
     "machine: declare a Tenant with keys, listen on 127.0.0.1, or write `insecure: true`."},
    {gateway("  listen: 10.0.0.5:8080"),
     "c.yaml:5:11: Gateway/x.spec.listen: `10.0.0.5:8080` serves everybody who reaches this "
     "machine: declare a Tenant with keys, listen on 127.0.0.1, or write `insecure: true`."},
    {gateway("  admin: {listen: 10.0.0.5:9090}"),
     "c.yaml:5:19: Gateway/x.spec.admin.listen: `10.0.0.5:9090` is reachable from outside: "
     "write `token` beside it, or listen on 127.0.0.1."},
    {gateway("  listen: 127.0.0.1:9090"),
     "c.yaml:5:3: Gateway/x.spec.admin.listen: is the address for clients too; choose another "
     "port."},
    {gateway("  trusted_peers: [\"*\"]"),
     "c.yaml:5:19: Gateway/x.spec.trusted_peers[0]: `*` would let every peer claim any "
     "identity; list the networks of your proxies, like `10.0.0.0/8`."},
    {gateway("  trusted_peers: [10.0.0.1/8]"),
     "c.yaml:5:19: Gateway/x.spec.trusted_peers[0]: `10.0.0.1/8` has bits beyond its prefix; "
     "write `10.0.0.0/8` or the prefix that you mean."},
    {gateway("  tls: {cert: a.pem}"),
     "c.yaml:5:8: Gateway/x.spec.tls: `cert` and `key` go together; write both or none."},
    {gateway("  threads: 1") + "---\n" + gateway("  threads: 1"),
     "c.yaml:7:1: is a second Gateway, after `x`; a configuration has one."},
    {pool("  endpoints: [http://h]"),
     "c.yaml:4:1: Pool/x.spec: `model` is missing: The Model that its engines serve."},
    {pool("  model: y\n  endpoints: [http://h]"),
     "c.yaml:5:10: Pool/x.spec.model: there is no Model `y`; write `x`."},
    {"apiVersion: signalbox.dev/v1alpha1\nkind: Model\nmetadata: {}\n---\n"
     "apiVersion: signalbox.dev/v1alpha1\nkind: Pool\nmetadata: {name: p}\n"
     "spec: {model: y, endpoints: [http://h]}",
     "c.yaml:3:1: metadata: `name` is missing.\n"
     "c.yaml:8:15: Pool/p.spec.model: there is no Model `y`; declare it."},
    {pool("  model: x\n  endpoints: []"),
     "c.yaml:6:14: Pool/x.spec.endpoints: has 0 items; write at least 1."},
    {pool("  model: x\n  endpoints: [http://h/v1]"),
     "c.yaml:6:15: Pool/x.spec.endpoints[0]: `http://h/v1` has more than scheme, host and "
     "port; remove `/v1`."},
    {pool("  model: x\n  endpoints:\n  - http://h\n  - http://169.254.169.254"),
     "c.yaml:8:5: Pool/x.spec.endpoints[1]: `http://169.254.169.254` is a link-local or cloud "
     "metadata address; write a URL like `http://10.0.0.7:8000`."},
    {pool("  model: x\n  endpoints:\n  - http://h\n  - http://H:80"),
     "c.yaml:8:5: Pool/x.spec.endpoints[1]: is the same as item [0]; remove one."},
    {pool("  model: x\n  endpoints: [http://h]\n  engine: vlmm"),
     "c.yaml:7:11: Pool/x.spec.engine: `vlmm` is no value of this setting; did you mean "
     "`vllm`?"},
    {pool("  model: x\n  endpoints: [http://h]\n  ejected_share_max: 2"),
     "c.yaml:7:22: Pool/x.spec.ejected_share_max: `2` is out of range; write from 0 to 1."},
    {pool("  model: x\n  endpoints: [http://h]\n  api_key: sk-1"),
     "c.yaml:7:12: Pool/x.spec.api_key: a secret is never written here; write {env: NAME} or "
     "{file: PATH}."},
    {pool("  model: x\n  endpoints: [http://h]\n  tls: {ca: a.pem}"),
     "c.yaml:7:8: Pool/x.spec.tls: has no effect: no endpoint is an `https` URL; remove it."},
    {pool("  model: x\n  endpoints: [http://h]\n  tenants: [t]"),
     "c.yaml:7:13: Pool/x.spec.tenants[0]: there is no Tenant `t`; declare it."},
    {tenant("  concurrency_max: 1"),
     "c.yaml:4:1: Tenant/x.spec: `keys` is missing: API keys of the tenant; a file may hold "
     "one a line."},
    {tenant("  keys: [sk-1]"),
     "c.yaml:5:10: Tenant/x.spec.keys[0]: a key is never written here; write `sha256:` and "
     "its 64 hexadecimal digits, {env: NAME} or {file: PATH}."},
    {tenant("  keys:\n  - sha256:" + kHash + "\n  - sha256:" + kHash),
     "c.yaml:7:5: Tenant/x.spec.keys[1]: is the same as item [0]; remove one."},
    {tenant("  keys: [{env: A, file: b}]"),
     "c.yaml:5:10: Tenant/x.spec.keys[0]: has more than one source; keep one of {env: NAME} and "
     "{file: PATH}."},
    {"kind: Model\nmetadata: {name: x}\nspec:\n  loras:\n\t- a\n",
     "c.yaml:5:2: a tab stands where spaces are needed; indent with spaces."},
    {"kind: Model\nmetadata: {name: x}\nspec:\n\tloras: [a]\n",
     "c.yaml:4:7: a tab stands where spaces are needed; indent with spaces."},
    {"kind: Model\nmetadata: {name: x}\nspec:\n  public_name: a\n\tloras: [a]\n",
     "c.yaml:5:1: a tab stands where spaces are needed; indent with spaces."},
    {tenant("  keys: [{env: \"A B\"}]"),
     "c.yaml:5:16: Tenant/x.spec.keys[0].env: is no name of an environment variable: letters, "
     "digits and `_`."},
    {of("Route", "  targets: [{model: x, weight: 0}]") + "---\n" + of("Model", "  loras: []"),
     "c.yaml:5:12: Route/x.spec.targets: have no weight at all; give one of them more than 0."},
    {of("Route", "  targets: [{model: x}, {model: x}]") + "---\n" + of("Model", "  loras: []"),
     "c.yaml:5:33: Route/x.spec.targets[1].model: `x` is a target already; remove one."},
    {of("Route", "  targets: [{modell: x}]"),
     "c.yaml:5:13: Route/x.spec.targets[0]: `model` is missing: A Model.\n"
     "c.yaml:5:14: Route/x.spec.targets[0]: there is no setting `modell` here; did you mean "
     "`model`?"},
    {of("Model", "  loras: [x]"),
     "c.yaml:5:11: Model/x.spec.loras[0]: `x` is taken by Model/x; rename one."},
    {of("Objective", "  ttft: -1s"),
     "c.yaml:5:9: Objective/x.spec.ttft: `-1s` is negative; write a duration like `30s`, "
     "`250ms` or `1m30s`."},
};

TEST(WrongFiles, SayWhatWhereAndHowToMendIt) {
  Options options;
  options.environment = [](const std::string&) { return std::nullopt; };
  for (const Wrong& wrong : kTable) {
    const auto loaded = load_text("c.yaml", wrong.text, ".", options);
    ASSERT_FALSE(loaded) << wrong.text;
    EXPECT_EQ(loaded.error().message, wrong.message) << wrong.text;
  }
}

}  // namespace
}  // namespace signalbox::config
