// Reads streams with the official client, one after the other: a job is a line of JSON on standard input
// {url, key, body?, after?}, its report a line of JSON on standard output. With a body a run is started, without one
// the events of `url` are read.
import { createInterface } from "node:readline";
import { HttpAgent } from "@ag-ui/client";

class Reader extends HttpAgent {
  constructor(job) {
    super({ url: job.url });
    this.job = job;
  }

  // Roster's REST interface takes the agent and the text, not a RunAgentInput.
  requestInit() {
    const headers = { Authorization: `Bearer ${this.job.key}`, Accept: "text/event-stream" };
    if (this.job.after) headers["Last-Event-ID"] = String(this.job.after);
    if (!this.job.body) return { method: "GET", headers };
    return { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(this.job.body) };
  }
}

async function read(job) {
  const report = { events: [], warnings: [], error: null, outcome: null };
  for (const level of ["warn", "error"]) console[level] = (...words) => report.warnings.push(words.map(String).join(" "));
  const reader = new Reader(job);
  const subscriber = {
    onEvent: ({ event }) => void report.events.push(event),
    onRunFinishedEvent: ({ outcome }) => void (report.outcome = outcome),
    onRunFailed: ({ error }) => void (report.error = error.message),
  };
  try {
    await reader.runAgent({}, subscriber);
  } catch (error) {
    report.error = error.message;
  }
  return { ...report, messages: reader.messages, interrupts: reader.pendingInterrupts };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await read(JSON.parse(line)))}\n`);
}
