/**
 * The MCP server of this window, for VS Code's assistants: no settings file names it.
 *
 * Runs in the extension host; VS Code starts the server. Without the API (Cursor, Windsurf), and
 * where `mcp.json` has an entry already, there is none here.
 */
import * as fs from 'fs';
import * as path from 'path';
import * as vscode from 'vscode';

import { Kernels } from './kernels';
import { findHome } from './link';

const LABEL = 'notebook';
const PYTHON = 'python';
const COMMENTS = /("(?:[^"\\]|\\.)*")|\/\/.*|\/\*[\s\S]*?\*\//g;
const OWN = /"(?:mcp_notebook|[^"]*\bmcp-notebook(?:\.exe)?)"/;

export class Servers implements vscode.McpServerDefinitionProvider<vscode.McpStdioServerDefinition> {
  constructor(
    private readonly _context: vscode.ExtensionContext,
    private readonly _kernels: Kernels
  ) {
    this.onDidChangeMcpServerDefinitions = this._changed.event;
    if (vscode.lm?.registerMcpServerDefinitionProvider) {
      _context.subscriptions.push(vscode.lm.registerMcpServerDefinitionProvider('mcpNotebook.servers', this));
    }
  }

  readonly onDidChangeMcpServerDefinitions: vscode.Event<void>;

  /** Look again whether there is a server, and which one. */
  update(): void {
    const { pythons } = this._kernels;
    // One of several stays: a server that changes with the notebook in front would lose its clients.
    if (pythons.length && !pythons.includes(this._context.workspaceState.get(PYTHON, ''))) {
      void this._context.workspaceState.update(PYTHON, pythons[0]);
    }
    const python = this._choose();
    if (python !== this._told) {
      this._told = python;
      this._changed.fire();
    }
  }

  provideMcpServerDefinitions(): vscode.McpStdioServerDefinition[] {
    const python = (this._told = this._choose());
    if (!python) {
      return [];
    }
    const home: Record<string, string> = process.env.MCP_NOTEBOOK_HOME ? { MCP_NOTEBOOK_HOME: findHome() } : {};
    const args = ['-P', '-m', 'mcp_notebook', 'stdio'];
    const { version } = this._context.extension.packageJSON;
    return [new vscode.McpStdioServerDefinition(LABEL, python, args, home, version)];
  }

  /** Return the Python that serves; that of an earlier kernel until there is one again. */
  private _choose(): string | undefined {
    const python = this._context.workspaceState.get<string>(PYTHON);
    return python && fs.existsSync(python) && !this._listSettings().some(hasEntry) ? python : undefined;
  }

  private _listSettings(): string[] {
    // The user's settings folder, two above that of this extension.
    const user = path.resolve(this._context.globalStorageUri.fsPath, '..', '..', 'mcp.json');
    const folders = vscode.workspace.workspaceFolders ?? [];
    return [user, ...folders.map(({ uri }) => path.join(uri.fsPath, '.vscode', 'mcp.json'))];
  }

  private readonly _changed = new vscode.EventEmitter<void>();
  private _told?: string;
}

/** Return whether settings start mcp-notebook; what is commented out does not. */
function hasEntry(file: string): boolean {
  try {
    return OWN.test(fs.readFileSync(file, 'utf8').replace(COMMENTS, '$1'));
  } catch {
    return false;
  }
}
