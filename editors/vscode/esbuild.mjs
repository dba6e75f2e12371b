// Bundles the extension into one file, or its unit tests into out/test. Flags: --production, --watch, --tests.
import * as esbuild from 'esbuild';
import { readdirSync, rmSync } from 'node:fs';

const flags = new Set(process.argv.slice(2));

/** @type {esbuild.BuildOptions} */
const common = {
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  logLevel: 'warning',
  sourcemap: flags.has('--production') ? false : 'linked',
  minify: flags.has('--production'),
};

if (flags.has('--tests')) {
  rmSync('out/test', { recursive: true, force: true });
  await esbuild.build({
    ...common,
    entryPoints: readdirSync('test').filter((name) => name.endsWith('.test.ts')).map((name) => `test/${name}`),
    outdir: 'out/test',
    // The wasm of vscode-oniguruma is found next to its package, so the packages stay outside the bundle.
    packages: 'external',
  });
} else {
  const options = {
    ...common,
    entryPoints: ['src/extension.ts'],
    outfile: 'out/extension.js',
    external: ['vscode'],
  };
  if (flags.has('--watch')) {
    const context = await esbuild.context(options);
    await context.watch();
  } else {
    await esbuild.build(options);
  }
}
