#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times moeperm beside PyTorch's equivalents, in one process and one run, and prints the ratios.

    scripts/bench_peers.py [--library build/release/src/libmoeperm.so] [--tokens 4096] [--top-k 8]
                           [--experts 256] [--hidden 7168] [--dtype bfloat16] [--threads N]
                           [--repeat 7] [--compile] [--json]

Each alternative is checked first, on some of the tokens against sums in float64: one whose mean error
is above moeperm's is not as exact and does not count for the ratio. Memory for outputs is what the alternative makes it: eager PyTorch allocates intermediate tensors in every call,
which is part of what a call costs. Needs torch; says so and exits with 0 where there is none.
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import time
from pathlib import Path

MAX_RANK = 4


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
    ]


TensorPointer = ctypes.POINTER(Tensor)


class ContextOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("num_threads", ctypes.c_int32),
        ("isa", ctypes.c_char_p),
    ]


class ForwardArgs(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("tokens", TensorPointer),
        ("routing_map", TensorPointer),
        ("probs", TensorPointer),
        ("num_out_tokens", ctypes.c_int64),
        ("top_k", ctypes.c_int64),
        ("drop_and_pad", ctypes.c_int32),
        ("permuted_tokens", TensorPointer),
        ("permuted_probs", TensorPointer),
        ("sorted_indices", TensorPointer),
        ("tokens_per_expert", TensorPointer),
        ("expert_offsets", TensorPointer),
    ]


class GradArgs(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("permuted_tokens_grad", TensorPointer),
        ("permuted_probs_grad", TensorPointer),
        ("sorted_indices", TensorPointer),
        ("routing_map", TensorPointer),
        ("num_tokens", ctypes.c_int64),
        ("num_experts", ctypes.c_int64),
        ("drop_and_pad", ctypes.c_int32),
        ("skip_rows_out_of_range", ctypes.c_int32),
        ("tokens_grad", TensorPointer),
        ("probs_grad", TensorPointer),
    ]


class Moeperm:
    """The C ABI over torch tensors, just what this script needs."""

    def __init__(self, path, threads, torch):
        self.library = ctypes.CDLL(str(path))
        self.library.moeperm_last_error.restype = ctypes.c_char_p
        self.dtypes = {
            torch.float32: 1, torch.float16: 2, torch.bfloat16: 3, torch.int8: 4, torch.bool: 5,
            torch.int32: 6, torch.int64: 7,
        }
        self.context = ctypes.c_void_p()
        options = ContextOptions(ctypes.sizeof(ContextOptions), threads, None)
        self._call("moeperm_context_create", ctypes.byref(options), ctypes.byref(self.context))

    def _call(self, name, *args):
        if getattr(self.library, name)(*args) != 0:
            sys.exit(f"bench_peers: {name}: {self.library.moeperm_last_error().decode()}")

    def view(self, tensor):
        view = Tensor(tensor.data_ptr(), self.dtypes[tensor.dtype], tensor.dim())
        for i in range(tensor.dim()):
            view.shape[i] = tensor.shape[i]
            view.strides[i] = tensor.stride(i)
        return ctypes.pointer(view)

    def forward(self, **fields):
        self._run("moeperm_permute_with_routing_map", ForwardArgs, fields)

    def grad(self, **fields):
        self._run("moeperm_permute_with_routing_map_grad", GradArgs, fields)

    def _run(self, name, kind, fields):
        args = kind(struct_size=ctypes.sizeof(kind))
        for key, value in fields.items():
            setattr(args, key, self.view(value) if hasattr(value, "data_ptr") else value)
        self._call(name, ctypes.byref(args), self.context)


def timed(call, repeat):
    """Median seconds of a call, after one to warm up."""
    call()
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def routing(torch, tokens, experts, top_k):
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(tokens, experts, generator=generator)
    routing_map = torch.zeros(tokens, experts, dtype=torch.bool)
    routing_map.scatter_(1, scores.topk(top_k, dim=1).indices, True)
    return routing_map


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    root = Path(__file__).resolve().parent.parent
    parser.add_argument("--library", default=root / "build/release/src/libmoeperm.so", type=Path)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--top-k", type=int, default=8)
    parser.add_argument("--experts", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=7168)
    parser.add_argument("--dtype", choices=("bfloat16", "float16", "float32"), default="bfloat16")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--compile", action="store_true", help="torch.compile each one, too")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main():
    args = parse_args()
    try:
        import torch
        import torch.nn.functional as F
    except ImportError as error:
        print(f"bench_peers: torch cannot be imported ({error}); nothing to compare with")
        return
    if not args.library.exists():
        sys.exit(f"bench_peers: {args.library} is not there; build it with: make build")
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    dtype = getattr(torch, args.dtype)
    tokens, experts, top_k, hidden = args.tokens, args.experts, args.top_k, args.hidden
    rows = tokens * top_k
    moeperm = Moeperm(args.library, args.threads, torch)

    routing_map = routing(torch, tokens, experts, top_k)
    x = torch.randn(tokens, hidden, dtype=torch.float32).to(dtype)
    probs = torch.rand(tokens, experts)
    permuted = torch.empty(rows, hidden, dtype=dtype)
    permuted_probs = torch.empty(rows)
    sorted_indices = torch.empty(rows, dtype=torch.int32)
    dy = torch.randn(rows, hidden, dtype=torch.float32).to(dtype)
    dp = torch.randn(rows)
    dx = torch.empty_like(x)
    dprobs = torch.empty_like(probs)

    def ours_forward():
        moeperm.forward(tokens=x, routing_map=routing_map, probs=probs, num_out_tokens=rows,
                        top_k=top_k, permuted_tokens=permuted, permuted_probs=permuted_probs,
                        sorted_indices=sorted_indices)

    def ours_tokens_grad():
        moeperm.grad(permuted_tokens_grad=dy, sorted_indices=sorted_indices, num_tokens=tokens,
                     tokens_grad=dx)

    def ours_probs_grad():
        moeperm.grad(permuted_probs_grad=dp, sorted_indices=sorted_indices,
                     routing_map=routing_map, num_tokens=tokens, num_experts=experts,
                     probs_grad=dprobs)

    ours_forward()
    # What PyTorch's ways need is made before the clock starts, as moeperm's sorted_indices are.
    token_of_row = torch.arange(tokens).expand(experts, -1).masked_select(routing_map.T)
    row_of_slot = sorted_indices.long()
    wide_index = token_of_row[:, None].expand(-1, hidden)

    def index_add_float32():
        out = torch.zeros(tokens, hidden, dtype=torch.float32)
        return out.index_add_(0, token_of_row, dy.float()).to(dtype)

    def index_add_storage():
        return torch.zeros(tokens, hidden, dtype=dtype).index_add_(0, token_of_row, dy)

    def scatter_add_float32():
        out = torch.zeros(tokens, hidden, dtype=torch.float32)
        return out.scatter_add_(0, wide_index, dy.float()).to(dtype)

    def scatter_add_storage():
        return torch.zeros(tokens, hidden, dtype=dtype).scatter_add_(0, wide_index, dy)

    def gather_sum():
        return dy.index_select(0, row_of_slot).view(tokens, top_k, hidden).sum(1)

    def gather_sum_float32():
        gathered = dy.index_select(0, row_of_slot).view(tokens, top_k, hidden)
        return gathered.sum(1, dtype=torch.float32).to(dtype)

    def embedding_bag():
        return F.embedding_bag(row_of_slot.view(tokens, top_k), dy, mode="sum")

    # The exact results, of a part of the tokens where all would take long.
    some = min(tokens, 512)
    exact_grad = dy.index_select(0, row_of_slot[:some * top_k]).double()
    exact_grad = exact_grad.view(some, top_k, hidden).sum(1)

    def forward_index_select():
        rows_of_tokens = torch.arange(tokens).expand(experts, -1).masked_select(routing_map.T)
        return x.index_select(0, rows_of_tokens), probs.T.masked_select(routing_map.T)

    def probs_masked_scatter():
        out = torch.zeros(experts, tokens)
        return out.masked_scatter_(routing_map.T.contiguous(), dp).T.contiguous()

    cases = {
        "forward": (ours_forward, permuted, permuted.double()[:some], [forward_index_select]),
        "tokens gradient": (ours_tokens_grad, dx, exact_grad, [
            index_add_float32, index_add_storage, scatter_add_float32, scatter_add_storage,
            gather_sum, gather_sum_float32, embedding_bag]),
        "probs gradient": (ours_probs_grad, dprobs, None, [probs_masked_scatter]),
    }
    report = {"torch": torch.__version__, "threads": args.threads, "dtype": args.dtype,
              "tokens": tokens, "top_k": top_k, "experts": experts, "hidden": hidden, "cases": {}}
    if not args.json:
        print(f"{tokens} tokens x top {top_k} of {experts} experts, hidden {hidden}, {args.dtype}, "
              f"{args.threads} thread(s), torch {torch.__version__}")
    for name, (ours, result, exact, theirs) in cases.items():
        seconds = timed(ours, args.repeat)
        if exact is None:
            exact = result.double()[:some]  # copies
        our_error = (result[:some].double() - exact).abs().mean().item()
        entry = {"moeperm_s": seconds, "mean_error": our_error, "peers": []}
        if not args.json:
            print(f"\n{name}: moeperm {seconds * 1e3:.2f} ms, mean error {our_error:.4g}")
        for call in theirs:
            for compiled in (False, True) if args.compile else (False,):
                run = torch.compile(call) if compiled else call
                label = call.__name__ + (" (compiled)" if compiled else "")
                try:
                    got = run()
                    took = timed(run, args.repeat)
                except Exception as error:  # an operator PyTorch lacks for a dtype
                    print(f"  {label}: {str(error).splitlines()[0]}", file=sys.stderr)
                    continue
                got = got[0] if isinstance(got, tuple) else got
                error = (got[:some].double() - exact).abs().mean().item()
                as_exact = error <= our_error * 1.0001
                different = (got != result).sum().item()
                entry["peers"].append({"name": label, "s": took, "ratio": took / seconds,
                                       "as_exact": as_exact, "mean_error": error,
                                       "elements_that_differ": different})
                if not args.json:
                    note = "" if as_exact else "  (not as exact)"
                    print(f"  {label:34} {took * 1e3:9.2f} ms  {took / seconds:6.1f} x  "
                          f"mean error {error:.4g}, {different} elements differ{note}")
        for kind in ("eager", "compiled") if args.compile else ("eager",):
            best = min((p for p in entry["peers"]
                        if p["as_exact"] and p["name"].endswith("(compiled)") == (kind != "eager")),
                       key=lambda p: p["s"], default=None)
            if best is not None:
                entry[f"fastest_exact_{kind}"] = best["name"]
                entry[f"speed_up_{kind}"] = best["ratio"]
                if not args.json:
                    print(f"  fastest at least as exact, {kind}: {best['name']}, "
                          f"{best['ratio']:.1f} x the time of moeperm")
        report["cases"][name] = entry
    if args.json:
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
