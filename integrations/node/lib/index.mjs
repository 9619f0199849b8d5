// The same objects as by require: one sidecar in the process, however the package is imported.
import kern from './index.js';

export const {
  runCode, Sandbox, withSandbox, Kernel, Shell, Result, ExecutionResult, SandboxError, OptionError, MountRefused, ProgramNotFound,
  SidecarLost, doctor, info, shutdown,
} = kern;
export default kern;
