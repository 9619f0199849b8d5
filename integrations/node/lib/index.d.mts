export * from './index.js';
import * as kern from './index.js';
export default kern;
