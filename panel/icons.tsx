/** JupyterLab's icons that the panel has, in the colour of the text around them. */
import * as React from 'react';

const STOP = 'M6 6h12v12H6z';
const OPEN = 'M5.2,7.5L9,11.2l3.8-3.8H5.2z';
const CLOSED = 'M7.2,5.2L10.9,9l-3.8,3.8V5.2H7.2z';

function Icon({ path, size }: { path: string; size: number }): JSX.Element {
  return (
    <span className="jp-mcp-icon">
      <svg width={16} viewBox={`0 0 ${size} ${size}`}>
        <path className="jp-icon3" fill="#616161" d={path} />
      </svg>
    </span>
  );
}

export function StopIcon(): JSX.Element {
  return <Icon path={STOP} size={24} />;
}

/** Whether what follows is open. */
export function Caret({ isOpen }: { isOpen: boolean }): JSX.Element {
  return <Icon path={isOpen ? OPEN : CLOSED} size={18} />;
}
