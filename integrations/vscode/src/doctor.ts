// What this machine enforces, as a text to read and to send.
import * as kern from 'kern-sandbox';
import type { Settings } from './settings';

export async function doctorReport(version: string, settings: Settings): Promise<string> {
  const head = [`# Kern: doctor`, ``, `extension ${version}, node ${process.version}`];
  const set = [``, `## Settings`, ``, ...Object.entries(settings).map(([name, value]) => `* kern.${name}: ${JSON.stringify(value)}`)];
  try {
    const info = await kern.info();
    const { ok, checks } = await kern.doctor();
    const lines = checks.map(({ id, status, found, wanted, fix }) =>
      `* ${status === 'ok' ? 'ok' : status.toUpperCase()} ${id}: ${found}${wanted ? `; wanted: ${wanted}` : ''}${fix ? `\n  * cure: ${fix}` : ''}`);
    const languages = info.capabilities.languages.map(({ name, kernel }) => (kernel ? `${name} (kernel)` : name)).join(', ');
    return [...head, `program ${info.program}, ${info.server.name} ${info.server.version}, languages: ${languages}`, ``,
      `## ${ok ? 'Boxes start here' : 'Boxes do NOT start here'}`, ``, ...lines, ...set, ''].join('\n');
  } catch (error) {
    const reason = error instanceof kern.SandboxError ? `${error.reason}: ` : '';
    return [...head, ``, `## There is no sidecar to ask`, ``, `${reason}${(error as Error).message}`, ...set, ''].join('\n');
  }
}
