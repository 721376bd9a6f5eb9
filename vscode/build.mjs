/** Bundles the extension and its webview, and packs them as the .vsix that the wheel contains. */
import { createVSIX } from '@vscode/vsce';
import { build } from 'esbuild';

// The same bytes wherever and whenever it is built: CI compares them.
process.env.SOURCE_DATE_EPOCH = '1767225600';
process.env.TZ = 'UTC';

const options = {
  bundle: true,
  minify: true,
  define: { 'process.env.NODE_ENV': '"production"' },
  // The shared panel is outside of this folder.
  nodePaths: ['node_modules'],
  tsconfigRaw: { compilerOptions: { jsx: 'react' } },
  outdir: 'built'
};
await build({
  ...options,
  entryPoints: ['src/extension.ts'],
  external: ['vscode'],
  format: 'cjs',
  platform: 'node',
  target: 'node20'
});
await build({
  ...options,
  entryPoints: { panel: 'src/webview.tsx', style: 'src/style.css' },
  target: 'es2022'
});
await createVSIX({
  packagePath: '../mcp_notebook/clients/mcp-notebook.vsix',
  dependencies: false,
  allowMissingRepository: true,
  skipLicense: true
});
