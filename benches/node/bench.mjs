// Contestant of the side-by-side benchmark: node-llama-cpp with its prebuilt binaries.
//
//     node bench.mjs MODEL THREADS       one repetition per line of standard input; see ../README.md for the protocol

import path from "node:path";
import readline from "node:readline";
import process from "node:process";
import { getLlama, LlamaLogLevel } from "node-llama-cpp";

const N_PROMPT = 256;
const N_GEN = 64;
const N_CTX = 512;

const [modelPath, threadsText] = process.argv.slice(2);
const threads = Number(threadsText);
if (modelPath == null || !Number.isInteger(threads) || threads < 1) {
    console.error("usage: node bench.mjs MODEL THREADS");
    process.exit(2);
}

const loadStart = performance.now();
const llama = await getLlama({
    gpu: false,
    build: "never",
    usePrebuiltBinaries: true,
    skipDownload: true,
    maxThreads: threads,
    logLevel: LlamaLogLevel.error
});
const model = await llama.loadModel({ modelPath, gpuLayers: 0 });
const context = await model.createContext({
    sequences: 1,
    contextSize: N_CTX,
    batchSize: N_CTX,
    threads: { ideal: threads, min: threads }
});
const sequence = context.getSequence();
const loadMs = performance.now() - loadStart;

const prompt = Array.from({ length: N_PROMPT }, (_, i) => ((i * 7919 + 13) % 30000) + 100);
const name = path.parse(modelPath).name;

/** 32-bit FNV-1a over the picked tokens. */
function addToHash(hash, token) {
    for (let shift = 0; shift < 32; shift += 8) hash = Math.imul(hash ^ ((token >>> shift) & 0xff), 16777619);
    return hash >>> 0;
}

async function repetition() {
    await sequence.clearHistory();

    // The iterator samples once per step: its first step is the prompt, each further one is one generated token.
    const promptStart = performance.now();
    const tokens = sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true });
    let hash = addToHash(2166136261, (await tokens.next()).value);
    const promptMs = performance.now() - promptStart;

    const genStart = performance.now();
    for (let i = 0; i < N_GEN; i++) hash = addToHash(hash, (await tokens.next()).value);
    const genMs = performance.now() - genStart;

    await tokens.return();
    return { prompt_tokens: N_PROMPT, prompt_ms: promptMs, gen_tokens: N_GEN, gen_ms: genMs, ids: hash };
}

function print(line) {
    process.stdout.write(JSON.stringify({ who: "node-llama-cpp", model: name, ...line, load_ms: loadMs }) + "\n");
}

await repetition();
print({ ready: true, info: llama.systemInfo });

for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line.trim() === "run") print(await repetition());
}
await llama.dispose();
