export { builtProgram as binary } from '../../scripts/build.ts'
