// SPDX-License-Identifier: Apache-2.0
// Entry point.
int main() { return 0; }
