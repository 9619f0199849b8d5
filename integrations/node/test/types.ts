// Compiled, never run: what the declarations have to allow, and what they have to refuse.
import kern, { Sandbox, runCode, withSandbox, SandboxError, type CellResult, type protocol } from 'kern-sandbox';

export async function allowed(): Promise<void> {
  const one = await runCode('1', { memoryMb: 64, timeoutS: 5, language: 'bash', onStdout: (chunk) => void chunk.byteLength });
  const text: string = one.stdout;
  const bytes = await runCode('1', { encoding: 'buffer' });
  const buffer: Buffer = bytes.stdout;
  const fault: string | undefined = one.fault?.type;
  await using box = new Sandbox({ mounts: { '/a': ['/b', 'ro'] }, cpus: 1.5, tmpfs: { '/tmp': '1g' }, memoryMb: null });
  const kernel = await box.kernel({ onState: ({ state }) => void state });
  const cell: CellResult = await kernel.runCode('x', { signal: AbortSignal.timeout(5) });
  await kernel.runCode('x', { onInput: (prompt, { password }) => (password ? null : prompt) });
  const status: 'ok' | string = cell.cellStatus;
  const found: protocol.FileMatch[] = (await box.search('x', { regex: true })).matches;
  const content: string = await box.readFile('x', { encoding: 'utf8' });
  const raw: Buffer = await box.readFile('x');
  const seven: number = await withSandbox({}, async (sandbox) => (await sandbox.run(['true'])).exitCode);
  const reply: protocol.DoctorResult = await box.request('host/doctor');
  try { await kern.doctor(); } catch (error) { if (error instanceof SandboxError) void error.reason; }
  void [text, buffer, fault, status, found, content, raw, seven, reply];
}

export function refused(): void {
  // @ts-expect-error misspelt
  new Sandbox({ memoryMB: 64 });
  // @ts-expect-error wrong type
  new Sandbox({ timeoutS: '5' });
  // @ts-expect-error a mode that does not exist
  new Sandbox({ mounts: { '/a': ['/b', 'rx'] } });
  // @ts-expect-error an argv is a list
  void new Sandbox().run('ls');
  // @ts-expect-error no per-call network
  void new Sandbox().runCode('1', { network: true });
}
